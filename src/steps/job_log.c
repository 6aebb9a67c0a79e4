#include "steps/job_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "steps/clean_text.h"
#include "steps/job_folder.h"
#include "steps/tail.h"

enum {
	TAIL_MAX_BYTES = 64 * 1024,
	MARKS_BYTES = 512, /* room for what we say about what was left out */
	LINE_MAX_CHARS = 1000,
};

struct job_log {
	int fd;
	char *path;
	int64_t n_bytes;    /* in the file */
	int64_t head_bytes; /* from here on only the tail is kept */
	int64_t max_bytes;
	bool is_capped;
	bool is_line_open; /* the last byte was no line break */
	struct clean_text clean;
	struct mask_stream mask;
	struct buf text; /* of one piece, on its way to the file */
	struct tail tail, excerpt;
	struct error error;
};

int job_log_open(const char *folder, int64_t max_bytes, const struct masks *masks,
    struct job_log **ret, struct error *e)
{
	char *path = job_folder_file(folder, "log");
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	int64_t n_tail = max_bytes / 4 < TAIL_MAX_BYTES ? max_bytes / 4 : TAIL_MAX_BYTES;
	struct job_log *l;

	if (fd < 0) {
		error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
		free(path);
		return ERR_IO;
	}
	l = xcalloc(1, sizeof(*l));
	l->fd = fd;
	l->path = path;
	l->max_bytes = max_bytes;
	l->head_bytes = max_bytes - n_tail - MARKS_BYTES;
	mask_stream_init(&l->mask, masks);
	buf_init(&l->text, SIZE_MAX / 2);
	tail_init(&l->tail, (size_t)n_tail);
	tail_init(&l->excerpt, EXCERPT_MAX_BYTES);
	*ret = l;
	return 0;
}

static void write_bytes(struct job_log *l, const char *p, size_t n)
{
	while (n > 0 && !l->error.code) {
		ssize_t done = write(l->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			error_set(&l->error, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s", l->path,
			    strerror(errno));
			return;
		}
		p += done;
		n -= (size_t)done;
		l->n_bytes += done;
	}
}

static void cap(struct job_log *l)
{
	char *mark = xasprintf("%s== the log has %lld bytes: what comes now is left out, but for "
			       "its end\n",
	    l->is_line_open ? "\n" : "", (long long)l->n_bytes);

	l->is_capped = true;
	write_bytes(l, mark, strlen(mark));
	free(mark);
}

/* Text that is fit to be seen. */
static void add(struct job_log *l, const char *p, size_t n)
{
	int64_t room = l->head_bytes - l->n_bytes;
	size_t n_head;

	if (n == 0)
		return;
	n_head = l->is_capped || room <= 0 ? 0 : (int64_t)n <= room ? n : (size_t)room;
	/* not in the middle of a character */
	while (n_head > 0 && n_head < n && ((unsigned char)p[n_head] & 0xc0) == 0x80)
		n_head--;
	write_bytes(l, p, n_head);
	if (n_head > 0)
		l->is_line_open = p[n_head - 1] != '\n';
	if (n_head < n) {
		if (!l->is_capped)
			cap(l);
		tail_add(&l->tail, p + n_head, n - n_head);
	}
	l->is_line_open = p[n - 1] != '\n';
}

static void pass_on(struct job_log *l)
{
	add(l, buf_str(&l->text), l->text.len);
	tail_add(&l->excerpt, buf_str(&l->text), l->text.len);
	buf_clear(&l->text);
}

void job_log_output(struct job_log *l, const char *p, size_t n)
{
	struct buf clean = BUF_INIT(SIZE_MAX / 2);

	clean_text_feed(&l->clean, p, n, &clean);
	mask_stream_feed(&l->mask, buf_str(&clean), clean.len, &l->text);
	buf_release(&clean);
	pass_on(l);
}

static void end_output(struct job_log *l)
{
	struct buf clean = BUF_INIT(16);

	clean_text_end(&l->clean, &clean);
	mask_stream_feed(&l->mask, buf_str(&clean), clean.len, &l->text);
	mask_stream_end(&l->mask, &l->text);
	buf_release(&clean);
	pass_on(l);
}

void job_log_say(struct job_log *l, const char *fmt, ...)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);
	char *text = NULL, *masked;
	va_list ap;

	end_output(l);
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	masked = masks_text(l->mask.masks, text);
	buf_append_str(&line, l->is_line_open ? "\n== " : "== ");
	escape_line(&line, masked, LINE_MAX_CHARS);
	buf_append_char(&line, '\n');
	add(l, line.data, line.len);
	buf_release(&line);
	free(masked);
	free(text);
}

void job_log_begin_excerpt(struct job_log *l)
{
	tail_clear(&l->excerpt);
}

char *job_log_excerpt(struct job_log *l)
{
	const char *text, *p;
	int n_lines = 0;

	end_output(l);
	tail_trim(&l->excerpt);
	text = buf_str(&l->excerpt.bytes);
	/* a first line that is cut is shown only where it is the only one */
	p = l->excerpt.n_dropped > 0 ? strchr(text, '\n') : NULL;
	if (p && p[1])
		text = p + 1;
	for (p = text + strlen(text); p > text; p--)
		if (p[-1] == '\n' && *p && ++n_lines == EXCERPT_MAX_LINES)
			break;
	return xstrdup(p);
}

static void write_tail(struct job_log *l)
{
	char *mark;

	tail_trim(&l->tail);
	if (l->tail.n_dropped > 0) {
		mark = xasprintf("== %zu bytes were left out here\n", l->tail.n_dropped);
		write_bytes(l, mark, strlen(mark));
		free(mark);
	}
	write_bytes(l, buf_str(&l->tail.bytes), l->tail.bytes.len);
}

int job_log_close(struct job_log *l, struct error *e)
{
	int rc;

	if (!l)
		return 0;
	end_output(l);
	if (l->is_capped)
		write_tail(l);
	if (!l->error.code && fdatasync(l->fd))
		error_set(&l->error, ERR_IO, "%s: %s", l->path, strerror(errno));
	rc = l->error.code;
	if (rc)
		error_set(e, rc, "%s", l->error.text);
	close(l->fd);
	free(l->path);
	mask_stream_release(&l->mask);
	buf_release(&l->text);
	tail_release(&l->tail);
	tail_release(&l->excerpt);
	free(l);
	return rc;
}
