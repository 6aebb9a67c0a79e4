#include "logs/seekable.h"

#include "logs/logs.h"

/* The table is a skippable frame: its head, one entry for each frame (compressed and plain size), and a foot (the
 * number of frames, flags, the format's magic number). All little-endian. */
enum {
	HEAD_BYTES = 8,
	ENTRY_BYTES = 8,
	FOOT_BYTES = 9,
	FRAMES_MAX = LOG_MAX_BYTES / LOG_FRAME_BYTES + 1,
	TABLE_MAX_BYTES = HEAD_BYTES + FRAMES_MAX * ENTRY_BYTES + FOOT_BYTES,
	FRAME_MAX_BYTES = 2 * LOG_FRAME_BYTES, /* far above zstd's bound */
};
static_assert((int)TABLE_MAX_BYTES <= (int)SEEKABLE_END_BYTES, "one read finds the table");
#define SKIPPABLE_MAGIC UINT32_C(0x184D2A5E)
#define SEEKABLE_MAGIC  UINT32_C(0x8F92EAB1)

/* ---- input and output ---- */

int file_io_code(int errno_value)
{
	bool is_full = errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EFBIG;

	return is_full ? ERR_FULL : ERR_IO;
}

int file_io_write_at(int fd, const void *p, size_t n, int64_t at)
{
	const char *from = p;

	while (n > 0) {
		ssize_t done = pwrite(fd, from, n, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return file_io_code(errno);
		from += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int file_io_read(int fd, void *p, size_t n, int64_t at, size_t *ret_n)
{
	char *to = p;

	*ret_n = 0;
	while (*ret_n < n) {
		ssize_t got = pread(fd, to + *ret_n, n - *ret_n, at + (int64_t)*ret_n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return file_io_code(errno);
		if (got == 0)
			break;
		*ret_n += (size_t)got;
	}
	return 0;
}

/* ---- the format ---- */

static void put_u32(struct buf *b, uint32_t v)
{
	const uint8_t bytes[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};

	buf_append(b, bytes, sizeof(bytes));
}

static uint32_t get_u32(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* ---- writing ---- */

void seekable_writer_init(struct seekable_writer *w, int fd, struct compressor *by)
{
	*w = (struct seekable_writer){.fd = fd, .by = by};
	buf_init(&w->frame, FRAME_MAX_BYTES);
	buf_init(&w->table, TABLE_MAX_BYTES);
}

static int write_next(struct seekable_writer *w, const struct buf *b)
{
	int rc = file_io_write_at(w->fd, b->data, b->len, w->n_written);

	w->n_written += (int64_t)b->len;
	return rc;
}

int seekable_add(struct seekable_writer *w, const char *p, size_t n)
{
	int rc = compress(w->by, p, n, &w->frame);

	if (rc)
		return rc;
	put_u32(&w->table, (uint32_t)w->frame.len);
	put_u32(&w->table, (uint32_t)n);
	w->n_frames++;
	return write_next(w, &w->frame);
}

int seekable_end(struct seekable_writer *w)
{
	struct buf head = BUF_INIT(HEAD_BYTES);
	int rc;

	put_u32(&head, SKIPPABLE_MAGIC);
	put_u32(&head, (uint32_t)(w->table.len + FOOT_BYTES));
	put_u32(&w->table, w->n_frames);
	buf_append_char(&w->table, 0);
	put_u32(&w->table, SEEKABLE_MAGIC);
	rc = buf_status(&w->table);
	if (!rc)
		rc = write_next(w, &head);
	if (!rc)
		rc = write_next(w, &w->table);
	buf_release(&head);
	return rc;
}

void seekable_writer_release(struct seekable_writer *w)
{
	buf_release(&w->frame);
	buf_release(&w->table);
}

/* ---- reading ---- */

static int read_exactly(int fd, char *p, size_t n, int64_t at)
{
	size_t got;
	int rc = file_io_read(fd, p, n, at, &got);

	if (rc)
		return rc;
	return got == n ? 0 : ERR_CORRUPT;
}

/* Checks that the entries fill the file up to the table and that each has a possible size. */
static int read_entries(const char *p, int64_t frames_bytes, struct seekable_index *ret)
{
	int64_t at = 0;

	ret->frames = xcalloc(ret->n_frames + 1, sizeof(*ret->frames));
	for (size_t i = 0; i < ret->n_frames; i++, p += ENTRY_BYTES) {
		struct seekable_frame *f = &ret->frames[i];

		*f = (struct seekable_frame){
		    .at = at, .text_at = ret->text_bytes, .bytes = get_u32(p), .text_bytes = get_u32(p + 4)};
		if (f->bytes == 0 || f->bytes > FRAME_MAX_BYTES || f->text_bytes == 0 ||
		    f->text_bytes > LOG_FRAME_BYTES)
			return ERR_CORRUPT;
		at += f->bytes;
		ret->text_bytes += f->text_bytes;
	}
	return at == frames_bytes && ret->text_bytes <= LOG_MAX_BYTES ? 0 : ERR_CORRUPT;
}

int seekable_index_parse(const char *end, size_t n, int64_t file_bytes, struct seekable_index *ret)
{
	*ret = (struct seekable_index){0};
	if (n < HEAD_BYTES + FOOT_BYTES)
		return ERR_CORRUPT;
	const char *foot = end + n - FOOT_BYTES;
	if (get_u32(foot) > FRAMES_MAX || foot[4] != 0 || get_u32(foot + 5) != SEEKABLE_MAGIC)
		return ERR_CORRUPT;
	size_t entries = get_u32(foot) * ENTRY_BYTES, table = HEAD_BYTES + entries + FOOT_BYTES;
	if (n < table)
		return ERR_CORRUPT;
	const char *head = end + n - table;
	if (get_u32(head) != SKIPPABLE_MAGIC || get_u32(head + 4) != entries + FOOT_BYTES)
		return ERR_CORRUPT;
	ret->n_frames = get_u32(foot);
	return read_entries(head + HEAD_BYTES, file_bytes - (int64_t)table, ret);
}

int seekable_index_read(int fd, struct seekable_index *ret)
{
	char end[SEEKABLE_END_BYTES];
	struct stat st;

	*ret = (struct seekable_index){0};
	if (fstat(fd, &st))
		return ERR_IO;
	size_t n = st.st_size < SEEKABLE_END_BYTES ? (size_t)st.st_size : SEEKABLE_END_BYTES;
	int rc = read_exactly(fd, end, n, st.st_size - (int64_t)n);
	return rc ? rc : seekable_index_parse(end, n, st.st_size, ret);
}

void seekable_index_release(struct seekable_index *x)
{
	free(x->frames);
	*x = (struct seekable_index){0};
}

/* Relies only on the order of the frames. */
size_t seekable_frame_with(const struct seekable_index *x, int64_t offset)
{
	size_t low = 0, high = x->n_frames;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (x->frames[middle].text_at + x->frames[middle].text_bytes <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_frame(const struct seekable_source *from, const struct seekable_frame *f)
{
	return from->fd >= 0 || (f->at >= from->at && f->at + f->bytes <= from->at + (int64_t)from->n);
}

static int read_frame(const struct seekable_source *from, const struct seekable_frame *f, struct buf *text)
{
	char *bytes = from->fd >= 0 ? xmalloc(f->bytes) : NULL;
	int rc = bytes ? read_exactly(from->fd, bytes, f->bytes, f->at) : 0;

	buf_clear(text);
	if (!rc) {
		rc = decompress(bytes ? bytes : from->p + (f->at - from->at), f->bytes, text);
		if (rc == ERR_TOO_BIG || (!rc && text->len != f->text_bytes))
			rc = ERR_CORRUPT;
	}
	free(bytes);
	return rc;
}

int seekable_read(const struct seekable_source *from, const struct seekable_index *x, int64_t offset, char *out,
    size_t n, size_t *ret_n)
{
	/* One byte more than a frame has: a frame that is too long is found. */
	struct buf text = BUF_INIT(LOG_FRAME_BYTES + 1);
	int rc = 0;

	*ret_n = 0;
	for (size_t i = seekable_frame_with(x, offset); i < x->n_frames && *ret_n < n && has_frame(from, &x->frames[i]);
	     i++) {
		size_t skip = (size_t)(offset + (int64_t)*ret_n - x->frames[i].text_at), part;

		rc = read_frame(from, &x->frames[i], &text);
		if (rc)
			break;
		part = text.len - skip < n - *ret_n ? text.len - skip : n - *ret_n;
		memcpy(out + *ret_n, text.data + skip, part);
		*ret_n += part;
	}
	buf_release(&text);
	return rc;
}
