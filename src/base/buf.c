void buf_init(struct buf *b, size_t max_bytes) { *b = (struct buf)BUF_INIT(max_bytes); }

void buf_release(struct buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->is_overflow = false;
	if (b->data)
		b->data[0] = '\0';
}

int buf_reserve(struct buf *b, size_t n)
{
	if (n > b->max || b->len > b->max - n) {
		b->is_overflow = true;
		return ERR_TOO_BIG;
	}
	size_t want = b->len + n + 1, cap = b->cap ? b->cap : 256;
	if (want <= b->cap)
		return 0;
	while (cap < want)
		cap *= 2;
	if (cap > b->max + 1)
		cap = b->max + 1;
	b->data = xrealloc(b->data, cap);
	b->cap = cap;
	return 0;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	int rc = buf_reserve(b, n);

	if (rc)
		return rc;
	if (n)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int buf_append_str(struct buf *b, const char *s) { return buf_append(b, s, strlen(s)); }

int buf_append_char(struct buf *b, char c) { return buf_append(b, &c, 1); }

int buf_appendf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return ERR_INVALID;
	rc = buf_reserve(b, (size_t)n);
	if (rc)
		return rc;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

int buf_status(const struct buf *b) { return b->is_overflow ? ERR_TOO_BIG : 0; }

const char *buf_str(const struct buf *b) { return b->data ? b->data : ""; }

char *buf_detach(struct buf *b)
{
	char *s = b->data ? b->data : xstrdup("");

	buf_init(b, b->max);
	return s;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n >= b->len) {
		buf_clear(b);
		return;
	}
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}
