/* The files of a configuration: the mistakes that are found in them, and reading the files that a configuration names
 * (plain files, systemd's credentials, vendors' secrets). Explanations name paths, never a secret's content.
 *
 * Thread: reading blocks, so not the loop while the daemon serves. A struct problems belongs to the thread that
 * reads. Owns: the caller, with problems_release(). */
#pragma once

/* ---- problems: all mistakes, printed together at the end in the order of file and line ---- */

struct problems {
	struct problem {
		char *file;
		int line;
		char *text;
	} * all;
	size_t n; /* also those past the limit, which are only counted */
};

void problems_release(struct problems *p);
/* Adds one line of text about a place. Invisible characters (base/escape.h) become U+FFFD. */
void problem_add(struct problems *p, const char *file, int line, const char *fmt, ...) PRINTF(4, 5);
/* The number of problems in `all`. */
size_t problems_n_kept(const struct problems *p);
/* Appends "file:line: text\n" for each, sorted; equal places keep their order. */
void problems_print(struct problems *p, struct buf *out);

#define SHOWN_BYTES 72
/* A value as a message may show it: in quotes, cut to size, control bytes and bad UTF-8 as '?'. Returns out. */
const char *shown(const char *value, char out[SHOWN_BYTES]);
/* The same in memory of the surrounding block. */
#define QUOTED(value) shown(value, (char[SHOWN_BYTES]){0})

/* ---- files ---- */

enum { SECRET_FILE_MAX_BYTES = 64 * 1024 };

/* The path for open(): below `folder` unless absolute. free(). */
char *source_path(const char *folder, const char *written);
/* Appends a regular file's bytes (out->max is the ceiling). */
int source_read(const char *path, struct buf *out, struct error *e) MUST_CHECK;
/* The functions below open every secret that a configuration names. Each adds the file's path to
 * *exposed when every user of the machine can read or change it (strv_free()). */
/* secret_read() of a file. */
int source_read_secret_file(const char *prefix, const char *path, enum secret_form form, char ***exposed,
    struct secret **ret, struct error *e) MUST_CHECK;
/* Reads an operator's secret: a file, or "credential:NAME" for systemd's. *ret, which the caller owns, holds `prefix`
 * and the content without one newline at its end; NULL on failure. An empty secret is refused. */
int source_read_secret(const char *prefix, const char *folder, const char *written, char ***exposed,
    struct secret **ret, struct error *e) MUST_CHECK;
/* Reads a secret that a vendor's file names: secrets_dir/accelerator/name. A link that leads out of
 * this folder is refused. */
int source_read_vendor_secret(const char *secrets_dir, const char *accelerator, const char *name, char ***exposed,
    struct secret **ret, struct error *e) MUST_CHECK;
/* The warning for each exposed file. */
#define EXPOSED_FILE_TEXT "every user of this machine can read or change this secret: chmod 600"
