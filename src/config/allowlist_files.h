/* CRCR's allowlist.yml as files of accelerators.d: one for each accelerator that it stands for, which
 * means the same. */
#ifndef CONFIG_ALLOWLIST_FILES_H
#define CONFIG_ALLOWLIST_FILES_H

#include "base/buf.h"
#include "config/allowlist.h"

struct allowlist_files {
	struct allowlist list;
	char **texts; /* list.n of them, in its order: what NAME.yml holds */
};

/* Reads the list as outpostd does. ERR_INVALID: every mistake was appended to `messages`, a line
 * each, "file:line: what is wrong"; also where a file would be none that outpostd takes. Release in
 * any case. */
int allowlist_files_read(
    const char *path, struct allowlist_files *ret, struct buf *messages) MUST_CHECK;
void allowlist_files_release(struct allowlist_files *f);

#endif
