#include "steps/job_folder.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"

char *job_folder_file(const char *folder, const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

int job_folder_write(const char *folder, const char *name, const void *p, size_t n, struct error *e)
{
	char *path = job_folder_file(folder, name);
	int rc = file_write_atomic(path, p, n, 0600, e);

	free(path);
	return rc;
}

int job_folder_read(
    const char *folder, const char *name, size_t max, char **ret, size_t *ret_n, struct error *e)
{
	char *path = job_folder_file(folder, name);
	struct buf out = BUF_INIT(max);
	int rc = file_read(path, &out, e);

	if (!rc) {
		*ret_n = out.len;
		*ret = out.data ? buf_take(&out) : xstrdup("");
	}
	buf_release(&out);
	free(path);
	return rc;
}
