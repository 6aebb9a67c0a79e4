#include "db/bodies.h"

#include "db/record_rows.h"

enum {
	BASE_MIN_BYTES = 1 << 10,
	BASE_MAX_BYTES = 64 << 10,
	BASES_MAX = 12, /* of a connection: each takes some 200 KiB once a body was compressed with it */
	LEVEL = 1,
};
static const int64_t BASE_LASTS_MS = INT64_C(30) * 24 * 3600 * 1000;

struct body_base {
	int64_t id, made_ms;
	char *event;
	struct buf text;
	struct compress_base *prepared; /* NULL: no body was compressed with it yet */
};

struct body_bases {
	struct body_base at[BASES_MAX];
	size_t n;
	bool may_be_undone; /* a base was made since the last commit */
};

static void forget_bases(struct body_bases *b)
{
	for (size_t i = 0; i < b->n; i++) {
		compress_base_free(b->at[i].prepared);
		buf_release(&b->at[i].text);
		free(b->at[i].event);
	}
	b->n = 0;
}

void body_bases_free(struct body_bases *b)
{
	if (!b)
		return;
	forget_bases(b);
	free(b);
}

void body_bases_undone(struct body_bases *b)
{
	if (b && b->may_be_undone)
		forget_bases(b);
}

void body_bases_committed(struct body_bases *b)
{
	if (b)
		b->may_be_undone = false;
}

static struct body_bases *bases_of(const struct view *d)
{
	struct body_bases **b = db_body_bases(d);

	if (!*b)
		*b = xcalloc(1, sizeof(**b));
	return *b;
}

#define BODY_BASE_RECORD(F, S)                                                                                         \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, TIME, made_ms, NULL, "made_ms", "")                                                                       \
	F(S, BORROWED, event, NULL, "event", "")                                                                       \
	F(S, BLOB, body, NULL, "body", "")
RECORD_LOCAL(body_base_row, BODY_BASE_RECORD)

/* Remembers the base in the first row. NULL: there is none, or it is damaged. */
static struct body_base *remember_base(struct body_bases *b, struct rows *r)
{
	struct body_base base = {.text = BUF_INIT(BASE_MAX_BYTES)};
	struct body_base_row row;
	bool is_good = false;

	if (rows_next(r)) {
		record_read(r, &body_base_row_record, &row);
		base.id = row.id;
		base.made_ms = row.made_ms;
		base.event = xstrdup(row.event);
		is_good = row.body.p && decompress(row.body.p, row.body.n, &base.text) == 0;
	}
	rows_end(r);
	if (!is_good) {
		free(base.event);
		buf_release(&base.text);
		return NULL;
	}
	if (b->n == BASES_MAX)
		forget_bases(b);
	b->at[b->n] = base;
	return &b->at[b->n++];
}

static struct rows *base_rows(const struct view *d, int64_t id)
{
	return db_rows(d, RECORD_QUERY(BODY_BASE_RECORD, "FROM body_base WHERE id = ?1"), V_INT(id));
}

/* The newest base of the event. NULL: there is none, or it is too old, so that the next body becomes one. */
static struct body_base *find_base(struct txn *d, const char *event, int64_t now_ms)
{
	struct body_bases *b = bases_of(d->view);
	struct body_base *newest = NULL;

	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->at[i].event, event) == 0 && (!newest || b->at[i].id > newest->id))
			newest = &b->at[i];
	if (!newest) /* a remembered one is good enough, also when another connection made a newer one */
		newest = remember_base(
		    b, db_rows(d,
			   RECORD_QUERY(BODY_BASE_RECORD, "FROM body_base WHERE event = ?1 ORDER BY id DESC LIMIT 1"),
			   V_TEXT(event)));
	return newest && now_ms - newest->made_ms <= BASE_LASTS_MS ? newest : NULL;
}

/* NULL: the body is too short or too long for a base. */
static struct body_base *make_base(
    struct txn *d, const char *event, const void *body, size_t n, int64_t now_ms, struct buf *out)
{
	struct body_bases *b = bases_of(d->view);
	int64_t id;

	if (n < BASE_MIN_BYTES || n > BASE_MAX_BYTES || compress(db_compressor(d), body, n, out))
		return NULL;
	b->may_be_undone = true;
	id = db_exec_int(d, 0, "INSERT INTO body_base (event, made_ms, body) VALUES (?1, ?2, ?3) RETURNING id",
	    V_TEXT(event), V_INT(now_ms), V_BLOB(out->data, out->len));
	return remember_base(b, base_rows(d->view, id));
}

int64_t body_pack(struct txn *d, const char *event, const void *body, size_t n, int64_t now_ms, struct buf *out)
{
	struct body_base *base = find_base(d, event, now_ms);
	int rc;

	if (!base)
		base = make_base(d, event, body, n, now_ms, out);
	if (base && !base->prepared)
		base->prepared = compress_base_new(base->text.data, base->text.len, LEVEL);
	rc = base ? compress_with_base(db_compressor(d), base->prepared, body, n, out)
		  : compress(db_compressor(d), body, n, out);
	if (rc)
		db_fail(d, ERR_TOO_BIG, "a body of %zu bytes cannot be stored", n);
	return base ? base->id : 0;
}

int body_unpack(const struct view *d, int64_t base_id, const void *p, size_t n, struct buf *out)
{
	struct body_bases *b = bases_of(d);
	struct body_base *base = NULL;

	buf_clear(out);
	if (!base_id)
		return decompress(p, n, out);
	for (size_t i = 0; i < b->n && !base; i++)
		if (b->at[i].id == base_id)
			base = &b->at[i];
	if (!base)
		base = remember_base(b, base_rows(d, base_id));
	return base ? decompress_like(base->text.data, base->text.len, p, n, out) : ERR_CORRUPT;
}
