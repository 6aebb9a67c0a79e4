#include "daemon/callback_key.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/id.h"

int callback_key_load(const char *state_dir, uint8_t key[CALLBACK_KEY_BYTES], struct error *e)
{
	char *path = path_join(state_dir, "callback.key");
	struct buf content = BUF_INIT(CALLBACK_KEY_BYTES + 1);
	struct error why = {0};
	int rc = file_read(path, &content, &why);

	if (rc == ERR_NOT_FOUND) {
		random_bytes(key, CALLBACK_KEY_BYTES);
		rc = file_write_atomic(path, key, CALLBACK_KEY_BYTES, 0600, e);
	} else if (rc) {
		error_set(e, rc, "%s", why.text);
	} else if (content.len != CALLBACK_KEY_BYTES) {
		rc = error_set(e, ERR_CORRUPT,
		    "%s: not a key of %d bytes; without it the tokens that are out cannot be "
		    "checked "
		    "(restore it, or remove it to make a new one)",
		    path, CALLBACK_KEY_BYTES);
	} else {
		memcpy(key, content.data, CALLBACK_KEY_BYTES);
	}
	if (content.data)
		explicit_bzero(content.data, content.len);
	buf_release(&content);
	free(path);
	return rc;
}
