#include "steps/job_log.h"

#include "steps/job_folder.h"

enum {
	TAIL_MAX_BYTES = 64 * 1024,
	MARKS_BYTES = 512, /* room for our lines about the missing text */
	LINE_MAX_CHARS = 1000,
};

/* ---- UTF-8 ---- */

#define REPLACEMENT "\xef\xbf\xbd"

static void clean_byte(struct clean_text *c, char b, struct buf *out)
{
	char low[sizeof(c->held)], high[sizeof(c->held)];
	bool is_open = false;

	if (!c->n_held && b == '\0')
		return;
	c->held[c->n_held++] = b;
	unsigned char first = (unsigned char)c->held[0];
	size_t length = first < 0x80                     ? 1
			: first >= 0xc2 && first <= 0xdf ? 2
			: first >= 0xe0 && first <= 0xef ? 3
			: first >= 0xf0 && first <= 0xf4 ? 4
							 : 0; /* no character begins with this byte */
	if (length && c->n_held < length) {
		/* True if these bytes can still become a character. The lowest and the highest continuation find
		 * overlong forms and surrogates at their second byte. */
		memset(low, 0x80, sizeof(low));
		memset(high, 0xbf, sizeof(high));
		memcpy(low, c->held, c->n_held);
		memcpy(high, c->held, c->n_held);
		is_open = utf8_is_valid(low, length) || utf8_is_valid(high, length);
	}
	if (is_open)
		return;
	if (length == c->n_held && utf8_is_valid(c->held, length)) {
		buf_append(out, c->held, length);
		c->n_held = 0;
		return;
	}
	bool is_first = c->n_held == 1;
	buf_append_str(out, REPLACEMENT);
	c->n_held = 0;
	/* The last byte made the character invalid, but may begin another one. */
	if (!is_first)
		clean_byte(c, b, out);
}

void clean_text_feed(struct clean_text *c, const char *p, size_t n, struct buf *out)
{
	size_t i = 0;

	while (i < n) {
		size_t run = i;

		/* a run of ASCII; char may have a sign or not */
		while (!c->n_held && run < n && p[run] && (unsigned char)p[run] < 0x80)
			run++;
		buf_append(out, p + i, run - i);
		i = run;
		if (i < n)
			clean_byte(c, p[i++], out);
	}
}

void clean_text_end(struct clean_text *c, struct buf *out)
{
	if (c->n_held)
		buf_append_str(out, REPLACEMENT);
	c->n_held = 0;
}

/* ---- secrets ---- */

struct mask {
	char *text;
	size_t n;
};

struct masks {
	struct mask *list;
	size_t n;
	bool begins_with[256];
};

struct masks *masks_new(void) { return xcalloc(1, sizeof(struct masks)); }

void masks_free(struct masks *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		explicit_bzero(m->list[i].text, m->list[i].n);
		free(m->list[i].text);
	}
	FREE_ALL(m->list, m);
}

static void add_mask(struct masks *m, const char *p, size_t n)
{
	struct clean_text clean = {.n_held = 0};
	struct buf text = BUF_INIT(SIZE_MAX / 2);

	if (n < MASK_MIN_BYTES)
		return;
	/* The stream is clean text, so the secret has to be too. */
	clean_text_feed(&clean, p, n, &text);
	clean_text_end(&clean, &text);
	m->begins_with[(unsigned char)text.data[0]] = true;
	n = text.len;
	*ARRAY_PUSH(m->list, m->n) = (struct mask){.text = buf_detach(&text), .n = n};
}

void masks_add(struct masks *m, const char *value)
{
	size_t n = strlen(value);

	while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r'))
		n--;
	add_mask(m, value, n);
	if (!memchr(value, '\n', n))
		return;
	for (const char *line = value, *end = value + n; line < end;) {
		size_t length = strcspn(line, "\r\n");

		if (length > (size_t)(end - line))
			length = (size_t)(end - line);
		add_mask(m, line, length);
		line += length + 1;
	}
}

enum match { MATCH_NONE, MATCH_SECRET, MATCH_PERHAPS };

/* Compares the text at p with all secrets. *ret_n: the length of the longest secret that is there in full, or
 * 0. MATCH_PERHAPS: the text ends in the middle of a secret. */
static enum match match_secrets(const struct masks *m, const char *p, size_t n, size_t *ret_n)
{
	enum match found = MATCH_NONE;

	*ret_n = 0;
	if (!m->begins_with[(unsigned char)*p])
		return found;
	for (size_t i = 0; i < m->n; i++) {
		const struct mask *mask = &m->list[i];
		size_t both = mask->n < n ? mask->n : n;

		if (memcmp(mask->text, p, both) != 0)
			continue;
		if (mask->n > n)
			found = MATCH_PERHAPS;
		else if (mask->n > *ret_n)
			*ret_n = mask->n;
	}
	return found == MATCH_PERHAPS ? found : *ret_n ? MATCH_SECRET : found;
}

enum more { MORE_TO_COME, NO_MORE };

/* Moves bytes from `held` to `out`; those that may still belong to a secret stay held. */
static void mask_held(struct mask_stream *s, enum more more, struct buf *out)
{
	const char *p = s->held.data;
	size_t n = s->held.len, i = 0, masked_to = s->n_masked;

	for (; i < n; i++) {
		size_t length, run = 0; /* bytes that can begin no secret */
		enum match match;

		while (i >= masked_to && i + run < n && !s->masks->begins_with[(unsigned char)p[i + run]])
			run++;
		if (run > 0) {
			buf_append(out, p + i, run);
			s->is_inside = false;
			i += run;
		}
		if (i == n)
			break;
		match = match_secrets(s->masks, p + i, n - i, &length);
		if (match == MATCH_PERHAPS && more == MORE_TO_COME)
			break;
		/* The end cut a secret off: its beginning shows much of it, so it is masked too. */
		if (match == MATCH_PERHAPS && n - i >= MASK_MIN_BYTES)
			length = n - i;
		if (length && i + length > masked_to)
			masked_to = i + length;
		if (i >= masked_to) {
			buf_append_char(out, p[i]);
			s->is_inside = false;
		} else if (!s->is_inside) {
			buf_append_str(out, "***");
			s->is_inside = true;
		}
	}
	s->n_masked = masked_to > i ? masked_to - i : 0;
	buf_consume(&s->held, i);
}

void mask_stream_init(struct mask_stream *s, const struct masks *m)
{
	*s = (struct mask_stream){.masks = m};
	buf_init(&s->held, SIZE_MAX / 2);
}

void mask_stream_release(struct mask_stream *s) { buf_release(&s->held); }

void mask_stream_feed(struct mask_stream *s, const char *p, size_t n, struct buf *out)
{
	buf_append(&s->held, p, n);
	mask_held(s, MORE_TO_COME, out);
}

void mask_stream_end(struct mask_stream *s, struct buf *out)
{
	mask_held(s, NO_MORE, out);
	s->n_masked = 0;
	s->is_inside = false;
}

char *masks_text(const struct masks *m, const char *text)
{
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	struct mask_stream s;

	mask_stream_init(&s, m);
	mask_stream_feed(&s, text, strlen(text), &out);
	mask_stream_end(&s, &out);
	mask_stream_release(&s);
	return out.data ? buf_detach(&out) : xstrdup("");
}

char *masks_line(const struct masks *m, const char *text, size_t max_chars)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);
	char *masked = masks_text(m, text);

	escape_line(&line, masked, max_chars);
	free(masked);
	return line.data ? buf_detach(&line) : xstrdup("");
}

/* ---- the newest bytes of a stream ---- */

struct tail {
	struct buf bytes; /* up to twice max: trimmed from time to time and not at every byte */
	size_t max;
	size_t n_dropped;
};

static void tail_init(struct tail *t, size_t max_bytes)
{
	*t = (struct tail){.max = max_bytes};
	buf_init(&t->bytes, 2 * max_bytes);
}

static void tail_drop(struct tail *t, size_t n)
{
	buf_consume(&t->bytes, n);
	t->n_dropped += n;
}

static void tail_add(struct tail *t, const char *p, size_t n)
{
	if (n > t->max) {
		tail_drop(t, t->bytes.len);
		t->n_dropped += n - t->max;
		p += n - t->max;
		n = t->max;
	}
	if (t->bytes.len + n > 2 * t->max)
		tail_drop(t, t->bytes.len + n - t->max);
	buf_append(&t->bytes, p, n);
}

/* Cuts to max, at the beginning of a character. After it t->bytes is the tail. */
static void tail_trim(struct tail *t)
{
	size_t n = t->bytes.len > t->max ? t->bytes.len - t->max : 0;

	if (n > 0 || t->n_dropped > 0)
		while (n < t->bytes.len && ((unsigned char)t->bytes.data[n] & 0xc0) == 0x80)
			n++;
	tail_drop(t, n);
}

/* ---- the log ---- */

struct job_log {
	int fd;
	char *path;
	int64_t n_bytes;    /* in the file */
	int64_t head_bytes; /* after them only the tail is kept */
	int64_t max_bytes;
	bool is_capped;
	bool is_line_open; /* the last byte was not a line break */
	struct clean_text clean;
	struct mask_stream mask;
	struct buf text; /* one piece, on its way to the file */
	struct tail tail, excerpt;
	struct error error;
};

int job_log_open(
    const char *folder, int64_t max_bytes, const struct masks *masks, struct job_log **ret, struct error *e)
{
	char *path = path_join(folder, "log");
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

static void write_log_bytes(struct job_log *l, const char *p, size_t n)
{
	while (n > 0 && !l->error.code) {
		ssize_t done = write(l->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			error_set(&l->error, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s", l->path, strerror(errno));
			return;
		}
		p += done;
		n -= (size_t)done;
		l->n_bytes += done;
	}
}

/* Adds text that may be shown: to the file while there is room, then to the tail. */
static void add_log_text(struct job_log *l, const char *p, size_t n)
{
	int64_t room = l->head_bytes - l->n_bytes;

	if (n == 0)
		return;
	size_t n_head = l->is_capped || room <= 0 ? 0 : (int64_t)n <= room ? n : (size_t)room;
	/* Do not cut a character. */
	while (n_head > 0 && n_head < n && ((unsigned char)p[n_head] & 0xc0) == 0x80)
		n_head--;
	write_log_bytes(l, p, n_head);
	if (n_head > 0)
		l->is_line_open = p[n_head - 1] != '\n';
	if (n_head < n && !l->is_capped) {
		char *mark = xasprintf("%s== the log has %lld bytes: from here on only its end is kept\n",
		    l->is_line_open ? "\n" : "", (long long)l->n_bytes);

		l->is_capped = true;
		write_log_bytes(l, mark, strlen(mark));
		free(mark);
	}
	if (n_head < n)
		tail_add(&l->tail, p + n_head, n - n_head);
	l->is_line_open = p[n - 1] != '\n';
}

static void add_masked_text(struct job_log *l)
{
	add_log_text(l, buf_str(&l->text), l->text.len);
	tail_add(&l->excerpt, buf_str(&l->text), l->text.len);
	buf_clear(&l->text);
}

void job_log_output(struct job_log *l, const char *p, size_t n)
{
	struct buf clean = BUF_INIT(SIZE_MAX / 2);

	clean_text_feed(&l->clean, p, n, &clean);
	mask_stream_feed(&l->mask, buf_str(&clean), clean.len, &l->text);
	buf_release(&clean);
	add_masked_text(l);
}

/* Our own lines and the excerpt come after all output, so no part of it stays held. */
static void flush_output(struct job_log *l)
{
	struct buf clean = BUF_INIT(16);

	clean_text_end(&l->clean, &clean);
	mask_stream_feed(&l->mask, buf_str(&clean), clean.len, &l->text);
	mask_stream_end(&l->mask, &l->text);
	buf_release(&clean);
	add_masked_text(l);
}

void job_log_say(struct job_log *l, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	flush_output(l);
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	char *masked = masks_line(l->mask.masks, text, LINE_MAX_CHARS);
	char *line = xasprintf("%s%s\n", l->is_line_open ? "\n== " : "== ", masked);
	add_log_text(l, line, strlen(line));
	FREE_ALL(line, masked, text);
}

void job_log_begin_excerpt(struct job_log *l)
{
	buf_clear(&l->excerpt.bytes);
	l->excerpt.n_dropped = 0;
}

char *job_log_excerpt(struct job_log *l)
{
	int n_lines = 0;

	flush_output(l);
	tail_trim(&l->excerpt);
	const char *text = buf_str(&l->excerpt.bytes);
	/* The first line may be cut: then it is left out, unless it is the only one. */
	const char *p = l->excerpt.n_dropped > 0 ? strchr(text, '\n') : NULL;
	if (p && p[1])
		text = p + 1;
	for (p = text + strlen(text); p > text; p--)
		if (p[-1] == '\n' && *p && ++n_lines == EXCERPT_MAX_LINES)
			break;
	return xstrdup(p);
}

int job_log_close(struct job_log *l, struct error *e)
{
	if (!l)
		return 0;
	flush_output(l);
	if (l->is_capped) {
		tail_trim(&l->tail);
		if (l->tail.n_dropped > 0) {
			char *mark = xasprintf("== %zu bytes were left out here\n", l->tail.n_dropped);

			write_log_bytes(l, mark, strlen(mark));
			free(mark);
		}
		write_log_bytes(l, buf_str(&l->tail.bytes), l->tail.bytes.len);
	}
	if (!l->error.code && fdatasync(l->fd))
		error_set(&l->error, ERR_IO, "%s: %s", l->path, strerror(errno));
	int rc = l->error.code;
	if (rc)
		error_set(e, rc, "%s", l->error.text);
	close(l->fd);
	free(l->path);
	mask_stream_release(&l->mask);
	buf_release(&l->text);
	buf_release(&l->tail.bytes);
	buf_release(&l->excerpt.bytes);
	free(l);
	return rc;
}
