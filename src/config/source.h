/* The bytes behind the paths that configuration names: files, systemd's credentials,
 * vendors' secrets.
 *
 * Thread: not the loop while the daemon serves. Explanations name paths, never content. */
#ifndef CONFIG_SOURCE_H
#define CONFIG_SOURCE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"

enum { SECRET_FILE_MAX_BYTES = 64 * 1024 };

/* The path as a program can open it: below `folder` unless absolute. free(). */
char *source_path(const char *folder, const char *written);
/* Appends a regular file's bytes (out->max is the ceiling). */
int source_read(const char *path, struct buf *out, struct error *e) MUST_CHECK;
/* The functions below open every secret that a configuration names. Each adds the file's path to
 * *exposed when every user of the machine can read or change it (strv_free()). */
/* secret_read() of a file. */
int source_read_secret_file(const char *prefix, const char *path, enum secret_form form,
    char ***exposed, struct secret **ret, struct error *e) MUST_CHECK;
/* A secret of the operator's: a file, or "credential:NAME" for systemd's, with `prefix` before
 * it. One newline at the file's end does not count; an empty one is refused. *ret is the
 * caller's, NULL on failure. */
int source_read_secret(const char *prefix, const char *folder, const char *written, char ***exposed,
    struct secret **ret, struct error *e) MUST_CHECK;
/* A secret that a vendor's file names: secrets_dir/accelerator/name, and nowhere else even
 * through links. */
int source_read_vendor_secret(const char *secrets_dir, const char *accelerator, const char *name,
    char ***exposed, struct secret **ret, struct error *e) MUST_CHECK;
/* What to say of each. */
#define EXPOSED_FILE_TEXT "every user of this machine can read or change this secret: chmod 600"

#endif
