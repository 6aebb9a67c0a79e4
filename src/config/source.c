#include "config/source.h"

enum { PROBLEMS_MAX = 1000, TEXT_MAX_BYTES = 1024 };

size_t problems_n_kept(const struct problems *p) { return p->n < PROBLEMS_MAX ? p->n : PROBLEMS_MAX; }

void problems_release(struct problems *p)
{
	for (size_t i = 0; i < problems_n_kept(p); i++)
		FREE_ALL(p->all[i].file, p->all[i].text);
	free(p->all);
	*p = (struct problems){0};
}

void problem_add(struct problems *p, const char *file, int line, const char *fmt, ...)
{
	struct buf clean = BUF_INIT(SIZE_MAX / 2);
	char text[TEXT_MAX_BYTES];
	va_list ap;

	if (p->n >= PROBLEMS_MAX) {
		p->n++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* The text may quote untrusted input, and a terminal shows it. */
	escape_line(&clean, text, 0);
	*ARRAY_PUSH(p->all, p->n) = (struct problem){.file = xstrdup(file), .line = line, .text = buf_detach(&clean)};
}

static int compare_places(const void *a, const void *b)
{
	const struct problem *x = a, *y = b;
	int by_file = strcmp(x->file, y->file);

	return by_file ? by_file : (x->line > y->line) - (x->line < y->line);
}

void problems_print(struct problems *p, struct buf *out)
{
	size_t n = problems_n_kept(p);
	struct problem *all = p->all;

	/* A stable sort: mistakes of one line stay in the order in which they were found. */
	for (size_t i = 1; i < n; i++) {
		struct problem one = all[i];
		size_t at = i;

		for (; at > 0 && compare_places(&all[at - 1], &one) > 0; at--)
			all[at] = all[at - 1];
		all[at] = one;
	}
	for (size_t i = 0; i < n; i++)
		buf_appendf(out, "%s:%d: %s\n", p->all[i].file, p->all[i].line, p->all[i].text);
	if (p->n > n)
		buf_appendf(out, "%s:%d: and %zu more mistakes\n", p->all[n - 1].file, p->all[n - 1].line, p->n - n);
}

const char *shown(const char *value, char out[SHOWN_BYTES])
{
	size_t room = SHOWN_BYTES - sizeof("\"…\""), whole = strlen(value);
	size_t n = utf8_cut(value, whole, room);

	snprintf(out, SHOWN_BYTES, "\"%.*s%s\"", (int)n, value, n < whole ? "…" : "");
	for (unsigned char *c = (unsigned char *)out; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
		else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* U+0080 to U+009F */
			c[0] = c[1] = '?';
	return out;
}

char *source_path(const char *folder, const char *written)
{
	return str_eq(folder, ".") ? xstrdup(written) : path_join(folder, written);
}

int source_read(const char *path, struct buf *out, struct error *e)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return error_set(e, ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
	/* Reading a pipe or a device could wait or never end. */
	if (!S_ISREG(st.st_mode))
		return error_set(e, ERR_INVALID, "%s: not a regular file", path);
	if (st.st_size > (off_t)out->max)
		return error_set(e, ERR_TOO_BIG, "%s: larger than %zu bytes", path, out->max);
	return file_read(path, out, e);
}

/* A name within one folder. */
static bool is_plain_name(const char *s) { return *s && *s != '.' && !strchr(s, '/'); }

int source_read_secret_file(
    const char *prefix, const char *path, enum secret_form form, char ***exposed, struct secret **ret, struct error *e)
{
	int rc = secret_read(prefix, path, form, SECRET_FILE_MAX_BYTES, ret, e);

	if (!rc && secret_is_exposed(*ret) && !(*exposed && strv_contains((const char *const *)*exposed, path)))
		strv_add(exposed, path);
	return rc;
}

int source_read_secret(
    const char *prefix, const char *folder, const char *written, char ***exposed, struct secret **ret, struct error *e)
{
	static const char scheme[] = "credential:";
	const char *name = written + sizeof(scheme) - 1;
	char *path;

	*ret = NULL;
	if (str_has_prefix(written, scheme)) {
		const char *directory = getenv("CREDENTIALS_DIRECTORY");

		if (!is_plain_name(name))
			return error_set(e, ERR_INVALID, "%s: a credential's name has no / and no leading .", written);
		if (!directory || !*directory)
			return error_set(e, ERR_NOT_FOUND, "%s: systemd sets no $CREDENTIALS_DIRECTORY here", written);
		path = path_join(directory, name);
	} else {
		path = source_path(folder, written);
	}
	int rc = source_read_secret_file(prefix, path, SECRET_TEXT, exposed, ret, e);
	free(path);
	return rc;
}

int source_read_vendor_secret(const char *secrets_dir, const char *accelerator, const char *name, char ***exposed,
    struct secret **ret, struct error *e)
{
	int rc;

	*ret = NULL;
	if (!is_plain_name(accelerator) || !is_plain_name(name))
		return error_set(
		    e, ERR_DENIED, "%s/%s/%s: leads out of the secrets' folder", secrets_dir, accelerator, name);
	char *path = xasprintf("%s/%s/%s", secrets_dir, accelerator, name);
	char *real = realpath(path, NULL);
	int why = errno; /* the file's reason is more useful than the folder's */
	char *base = realpath(secrets_dir, NULL);
	char *home = xasprintf("%s/%s/", base ? base : "", accelerator);
	if (!real || !base)
		rc = error_set(e, ERR_NOT_FOUND, "%s: %s", path, strerror(why));
	else if (!str_has_prefix(real, home))
		rc = error_set(e, ERR_DENIED, "%s: a link that leads out of its folder", path);
	else
		rc = source_read_secret_file("", real, SECRET_TEXT, exposed, ret, e);
	FREE_ALL(path, real, base, home);
	return rc;
}
