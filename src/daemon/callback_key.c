#include "daemon/callback_key.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "config/source.h"

enum { CALLBACK_KEY_BYTES = 32 };

static int make(const char *path, struct secret **ret, struct error *e)
{
	unsigned char key[CALLBACK_KEY_BYTES];
	int rc;

	random_bytes(key, sizeof(key));
	rc = file_write_atomic(path, key, sizeof(key), 0600, e);
	if (!rc)
		rc = secret_new(key, sizeof(key), ret, e);
	explicit_bzero(key, sizeof(key));
	return rc;
}

int callback_key_load(const char *state_dir, struct secret **ret, struct error *e)
{
	char *path = path_join(state_dir, "callback.key");
	struct error why = {0};
	int rc = secret_read("", path, SECRET_BYTES, CALLBACK_KEY_BYTES, ret, &why);

	if (rc == ERR_NOT_FOUND) {
		rc = make(path, ret, e);
	} else if (rc == ERR_TOO_BIG || (!rc && secret_bytes(*ret) != CALLBACK_KEY_BYTES)) {
		secret_unref(*ret);
		*ret = NULL;
		rc = error_set(e, ERR_CORRUPT,
		    "%s: not a key of %d bytes, so tokens that vendors hold cannot be checked: "
		    "restore it, or remove it to make a new one",
		    path, CALLBACK_KEY_BYTES);
	} else if (rc) {
		error_set(e, rc, "%s", why.text);
	} else if (secret_is_exposed(*ret)) {
		log_event(
		    LOG_WARN, "exposed_file", LOG_S("file", path), LOG_S("why", EXPOSED_FILE_TEXT));
	}
	free(path);
	return rc;
}
