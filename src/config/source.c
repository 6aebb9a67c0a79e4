#include "config/source.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strv.h"

char *source_path(const char *folder, const char *written)
{
	return str_eq(folder, ".") ? xstrdup(written) : path_join(folder, written);
}

/* A pipe or a device would make the reader wait, or never end. */
static int check_regular(const char *path, struct buf *out, struct error *e)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return error_set(e, ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, ERR_INVALID, "%s: not a regular file", path);
	if (st.st_size > (off_t)out->max)
		return error_set(e, ERR_TOO_BIG, "%s: larger than %zu bytes", path, out->max);
	return 0;
}

int source_read(const char *path, struct buf *out, struct error *e)
{
	int rc = check_regular(path, out, e);

	return rc ? rc : file_read(path, out, e);
}

/* One name in a folder: no way out of it. */
static bool is_plain_name(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

int source_read_secret_file(const char *prefix, const char *path, enum secret_form form,
    char ***exposed, struct secret **ret, struct error *e)
{
	int rc = secret_read(prefix, path, form, SECRET_FILE_MAX_BYTES, ret, e);

	if (!rc && secret_is_exposed(*ret) &&
	    !(*exposed && strv_contains((const char *const *)*exposed, path)))
		strv_add(exposed, path);
	return rc;
}

int source_read_secret(const char *prefix, const char *folder, const char *written, char ***exposed,
    struct secret **ret, struct error *e)
{
	static const char scheme[] = "credential:";
	const char *name = written + sizeof(scheme) - 1, *directory;
	char *path;
	int rc;

	*ret = NULL;
	if (str_has_prefix(written, scheme)) {
		directory = getenv("CREDENTIALS_DIRECTORY");
		if (!is_plain_name(name))
			return error_set(e, ERR_INVALID,
			    "%s: a credential is named without / and leading .", written);
		if (!directory || !*directory)
			return error_set(e, ERR_NOT_FOUND,
			    "%s: systemd sets no $CREDENTIALS_DIRECTORY here", written);
		path = path_join(directory, name);
	} else {
		path = source_path(folder, written);
	}
	rc = source_read_secret_file(prefix, path, SECRET_TEXT, exposed, ret, e);
	free(path);
	return rc;
}

int source_read_vendor_secret(const char *secrets_dir, const char *accelerator, const char *name,
    char ***exposed, struct secret **ret, struct error *e)
{
	char *path = xasprintf("%s/%s/%s", secrets_dir, accelerator, name), *real, *base, *home;
	int rc, why;

	*ret = NULL;
	if (!is_plain_name(accelerator) || !is_plain_name(name)) {
		rc = error_set(e, ERR_DENIED, "%s: leads out of the secrets' folder", path);
		free(path);
		return rc;
	}
	real = realpath(path, NULL);
	why = errno; /* of the file: the folder's fate says less */
	base = realpath(secrets_dir, NULL);
	home = xasprintf("%s/%s/", base ? base : "", accelerator);
	if (!real || !base)
		rc = error_set(e, ERR_NOT_FOUND, "%s: %s", path, strerror(why));
	else if (!str_has_prefix(real, home))
		rc = error_set(e, ERR_DENIED, "%s: a link that leads out of its folder", path);
	else
		rc = source_read_secret_file("", real, SECRET_TEXT, exposed, ret, e);
	free(path);
	free(real);
	free(base);
	free(home);
	return rc;
}
