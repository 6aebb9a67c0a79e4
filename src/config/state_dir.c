#include "config/state_dir.h"

#include "base/alloc.h"
#include "base/file.h"
#include "config/source.h"
#include "config/tree.h"

/* The text of one key at the top of the file. free() *ret. */
static int read_key(const char *path, const char *key, char **ret, struct error *e)
{
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct problems problems = {0};
	const struct node *value;
	struct node *root;
	int rc = source_read(path, &text, e);

	*ret = NULL;
	if (rc) {
		buf_release(&text);
		return rc;
	}
	root = tree_parse(path, buf_str(&text), text.len, &problems);
	value = tree_get(root, key);
	if (value && value->kind == NODE_SCALAR && *value->text)
		*ret = xstrdup(value->text);
	else
		rc = error_set(e, ERR_INVALID, "%s: no %s in it", path, key);
	tree_free(root);
	problems_release(&problems);
	buf_release(&text);
	return rc;
}

int config_state_dir(const char *path, char **ret, struct error *e)
{
	char *folder, *text;
	int rc = read_key(path, "state_dir", &text, e);

	*ret = NULL;
	if (rc)
		return rc;
	folder = path_folder(path);
	*ret = source_path(folder, text);
	free(folder);
	free(text);
	return 0;
}

int config_public_url(const char *path, char **ret, struct error *e)
{
	return read_key(path, "public_url", ret, e);
}
