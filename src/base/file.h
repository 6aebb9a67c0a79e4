/* Whole files, read with a ceiling, and written so that a crash leaves either the old or the new content.
 * Thread: any that may block, so not the loop while the daemon serves. Owns: the caller owns the returned paths. */
#pragma once

/* Opens with O_CLOEXEC. ERR_NOT_FOUND, ERR_DENIED, ERR_IO; the explanation names the path. */
int file_open(const char *path, int flags, int *ret_fd, struct error *e) MUST_CHECK;
/* Appends to out (whose max is the ceiling). The explanation names the path. */
int file_read(const char *path, struct buf *out, struct error *e) MUST_CHECK;
/* Writes PATH.new, syncs it, renames it to PATH and syncs the folder. */
int file_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct error *e) MUST_CHECK;
/* dir/name, or name itself when it is absolute. free(). */
char *path_join(const char *dir, const char *name);
/* The folder part of a path; "." for a plain name. free(). */
char *path_folder(const char *path);
