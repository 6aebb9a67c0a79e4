#include "config/state_dir.h"

#include "base/alloc.h"
#include "base/file.h"
#include "config/source.h"
#include "config/tree.h"

int config_state_dir(const char *path, char **ret, struct error *e)
{
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct problems problems = {0};
	const struct node *value;
	struct node *root;
	char *folder;
	int rc = source_read(path, &text, e);

	*ret = NULL;
	if (rc) {
		buf_release(&text);
		return rc;
	}
	root = tree_parse(path, buf_str(&text), text.len, &problems);
	value = tree_get(root, "state_dir");
	if (value && value->kind == NODE_SCALAR && *value->text) {
		folder = path_folder(path);
		*ret = source_path(folder, value->text);
		free(folder);
	} else {
		rc = error_set(e, ERR_INVALID, "%s: no state_dir in it", path);
	}
	tree_free(root);
	problems_release(&problems);
	buf_release(&text);
	return rc;
}
