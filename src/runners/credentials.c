#include "runners/credentials.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "loop/bell.h"
#include "runners/runners_internal.h"

/* The valid tokens, by hash and by id, and their last uses. Pure. */
struct credential_entry {
	struct token_row row; /* owned */
	int machine;          /* the number of the machine; -1: an API token */
	int64_t used_ms;      /* wall clock, of the last use since the start; 0: none */
	bool is_use_unwritten;
	char address[INET6_ADDRSTRLEN];
};

struct credential_table {
	struct credential_entry *entries; /* by hash */
	size_t n;
	int n_machines;
};

enum { TOKEN_SECRET_BYTES = 32 };

static const char *prefix_of(enum token_kind kind) { return kind == TOKEN_RUNNER ? "ort_" : "oat_"; }

void credential_make(enum token_kind kind, char out[CREDENTIAL_TEXT_BYTES])
{
	uint8_t secret[TOKEN_SECRET_BYTES];
	struct buf text = BUF_INIT(CREDENTIAL_TEXT_BYTES);

	random_bytes(secret, sizeof(secret));
	buf_append_str(&text, prefix_of(kind));
	base64url_encode(secret, sizeof(secret), &text);
	assert(text.len == CREDENTIAL_TEXT_BYTES - 1);
	memcpy(out, text.data, CREDENTIAL_TEXT_BYTES);
	explicit_bzero(text.data, text.len);
	explicit_bzero(secret, sizeof(secret));
	buf_release(&text);
}

bool credential_is_shaped(const char *text)
{
	return strlen(text) == CREDENTIAL_TEXT_BYTES - 1 &&
	       (str_has_prefix(text, prefix_of(TOKEN_RUNNER)) || str_has_prefix(text, prefix_of(TOKEN_API))) &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
		   CREDENTIAL_TEXT_BYTES - 1;
}

void credential_hash(const char *text, uint8_t out[SHA256_BYTES]) { sha256(text, strlen(text), out); }

static int compare_hashes(const void *a, const void *b)
{
	const struct credential_entry *x = a, *y = b;

	return memcmp(x->row.hash, y->row.hash, SHA256_BYTES);
}

/* NULL: there is none. */
static struct credential_entry *credential_table_find(
    const struct credential_table *t, const uint8_t hash[SHA256_BYTES])
{
	struct credential_entry key;

	memcpy(key.row.hash, hash, SHA256_BYTES);
	return t->n ? bsearch(&key, t->entries, t->n, sizeof(key), compare_hashes) : NULL;
}

static struct credential_entry *credential_table_find_id(const struct credential_table *t, int64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->entries[i].row.id == id)
			return &t->entries[i];
	return NULL;
}

static void credential_table_release(struct credential_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct token_row *row = &t->entries[i].row;

		FREE_ALL(row->accelerator, row->name, row->last_address);
	}
	free(t->entries);
	*t = (struct credential_table){0};
}

enum {
	ADDRESSES_MAX = 1024, /* with wrong tokens, in one minute */
	WRITE_USES_MS = 30 * 1000,
};

struct credentials {
	struct loop *loop;
	struct store *store;
	struct credential_table table;
	struct rate_limit *wrong;
	int64_t n_wrong;
	struct list_tokens list;
	bool is_read, is_closing;
	struct credentials_wait *now, *next; /* for this read; for the one after it */
	struct bell *bell;                   /* reads the tokens */
	struct timer *write_uses;
	int n_operations; /* operations of the store */
	void (*on_change)(void *owner);
	void *change_owner;
	void (*on_closed)(void *owner);
	void *closed_owner;
	struct log_limit unread_lines;
};

/* ---- last uses into the store ---- */

struct use_writing {
	struct touch_tokens op;
	struct credentials *credentials;
	struct token_use *uses;
};

static void credentials_let_go(struct credentials *c)
{
	assert(c->n_operations > 0);
	if (--c->n_operations == 0 && c->is_closing)
		loop_reap(c->loop, c->on_closed, c->closed_owner);
}

/* A failed write does not matter: the use is shown from memory, and the next use comes soon. */
static void on_uses_written(struct store_op *op)
{
	struct use_writing *w = CONTAINER_OF(op, struct use_writing, op.op);
	struct credentials *c = w->credentials;

	FREE_ALL(w->uses, w);
	credentials_let_go(c);
}

static void write_uses(struct credentials *c)
{
	struct use_writing *w = xcalloc(1, sizeof(*w));

	w->credentials = c;
	w->uses = xcalloc(c->table.n ? c->table.n : 1, sizeof(*w->uses));
	w->op = (struct touch_tokens){.op.done = on_uses_written, .uses = w->uses};
	for (size_t i = 0; i < c->table.n; i++) {
		const struct credential_entry *e = &c->table.entries[i];
		struct token_use *use = &w->uses[w->op.n];

		if (!e->is_use_unwritten)
			continue;
		*use = (struct token_use){.id = e->row.id, .used_ms = e->used_ms};
		memcpy(use->address, e->address, sizeof(e->address));
		w->op.n++;
	}
	if (w->op.n == 0 || store_touch_tokens(c->store, &w->op)) {
		FREE_ALL(w->uses, w);
		return;
	}
	c->n_operations++;
	for (size_t i = 0; i < c->table.n; i++)
		c->table.entries[i].is_use_unwritten = false;
}

static void on_write_uses(struct timer *t)
{
	struct credentials *c = timer_owner(t);

	write_uses(c);
	timer_start(t, WRITE_USES_MS);
}

/* ---- reading ---- */

static void end_waits(struct credentials_wait *list, int err)
{
	while (list) {
		struct credentials_wait *w = list;

		list = w->next;
		w->err = err;
		w->done(w);
	}
}

static void on_read(struct store_query *q)
{
	struct credentials *c = CONTAINER_OF(q, struct credentials, list.q);
	struct credentials_wait *waiting = c->now;
	int64_t n_skipped;
	int err = q->err;

	c->now = NULL;
	if (!err && !c->is_closing) {
		struct credential_table *t = &c->table;
		struct credential_table taken = {
		    .entries = xcalloc(c->list.n + 1, sizeof(*taken.entries)), .n = c->list.n};

		write_uses(c); /* also of tokens that are not in the list any more */
		/* The table takes over the list's rows, in the order of store_list_tokens(). Tokens that stay keep
		 * their last uses. */
		for (size_t i = 0; i < c->list.n; i++) {
			const struct token_row *row = &c->list.list[i];
			const struct token_row *last = i > 0 ? &taken.entries[i - 1].row : NULL;
			bool is_runner = row->kind == TOKEN_RUNNER;

			/* A machine's tokens follow each other in the list. */
			if (is_runner &&
			    !(last && last->kind == row->kind && str_eq(last->accelerator, row->accelerator) &&
				str_eq(last->name, row->name)))
				taken.n_machines++;
			taken.entries[i] =
			    (struct credential_entry){.row = *row, .machine = is_runner ? taken.n_machines - 1 : -1};
			c->list.list[i] = (struct token_row){0};
		}
		qsort(taken.entries, taken.n, sizeof(*taken.entries), compare_hashes);
		for (size_t i = 0; i < t->n; i++) {
			const struct credential_entry *old = &t->entries[i];
			struct credential_entry *same = credential_table_find(&taken, old->row.hash);

			if (!same)
				continue;
			same->used_ms = old->used_ms;
			same->is_use_unwritten = old->is_use_unwritten;
			memcpy(same->address, old->address, sizeof(same->address));
		}
		credential_table_release(t);
		*t = taken;
		c->is_read = true;
	}
	if (err && !c->is_closing && log_limit_pass(&c->unread_lines, loop_now_ms(c->loop), &n_skipped))
		log_event(LOG_ERROR, "tokens_not_read", LOG_S("why", q->why.text), LOG_I("more", n_skipped));
	list_tokens_release(&c->list);
	if (!err && !c->is_closing && c->on_change)
		c->on_change(c->change_owner);
	end_waits(waiting, err);
	if (err)
		bell_retry(c->bell);
	else
		bell_rest(c->bell);
	credentials_let_go(c);
}

static void read_credentials(void *owner)
{
	struct credentials *c = owner;

	c->now = c->next;
	c->next = NULL;
	c->list = (struct list_tokens){.q.done = on_read, .only_valid = true};
	if (store_list_tokens(c->store, &c->list)) {
		c->next = c->now; /* they wait for the next look */
		c->now = NULL;
		bell_retry(c->bell);
		return;
	}
	c->n_operations++;
}

void credentials_on_tokens(struct credentials *c) { bell_now(c->bell); }

static void refuse_wait(void *p)
{
	struct credentials_wait *w = p;

	w->err = ERR_CLOSING;
	w->done(w);
}

void credentials_await(struct credentials *c, struct credentials_wait *w)
{
	if (c->is_closing) {
		loop_reap(c->loop, refuse_wait, w);
		return;
	}
	w->next = c->next;
	c->next = w;
	credentials_on_tokens(c);
}

/* ---- checks ---- */

enum credential_verdict credentials_check(
    struct credentials *c, const char *text, const char *address, struct credential *ret, int *ret_retry_after_s)
{
	uint8_t hash[SHA256_BYTES], bytes[16];
	char block[INET6_ADDRSTRLEN];
	const char *key = address;
	struct credential_entry *e = NULL;

	if (!c->is_read)
		return CREDENTIAL_UNREAD;
	if (credential_is_shaped(text)) {
		credential_hash(text, hash);
		e = credential_table_find(&c->table, hash);
	}
	if (!e) {
		c->n_wrong++;
		/* The holder of an IPv6 address has 2^64 of them, so they count as one. */
		if (inet_pton(AF_INET6, address, bytes) == 1) {
			memset(bytes + 8, 0, 8);
			key = inet_ntop(AF_INET6, bytes, block, sizeof(block));
		}
		return rate_limit_admit(c->wrong, key, loop_now_ms(c->loop), ret_retry_after_s) ? CREDENTIAL_WRONG
												: CREDENTIAL_OVER_RATE;
	}
	e->used_ms = clock_wall_ms();
	e->is_use_unwritten = true;
	snprintf(e->address, sizeof(e->address), "%s", address);
	*ret = (struct credential){
	    .id = e->row.id,
	    .kind = e->row.kind,
	    .accelerator = e->row.accelerator,
	    .name = e->row.name,
	};
	return CREDENTIAL_GOOD;
}

bool credentials_are_read(const struct credentials *c) { return c->is_read; }

bool credentials_has(const struct credentials *c, int64_t id)
{
	return credential_table_find_id(&c->table, id) != NULL;
}

bool credentials_last_use(const struct credentials *c, int64_t id, int64_t *ret_wall_ms, const char **ret_address)
{
	const struct credential_entry *e = credential_table_find_id(&c->table, id);

	if (!e || !e->used_ms)
		return false;
	*ret_wall_ms = e->used_ms;
	*ret_address = e->address;
	return true;
}

int credentials_n_machines_since(const struct credentials *c, int64_t since_wall_ms)
{
	bool *is_seen = xcalloc((size_t)c->table.n_machines + 1, sizeof(*is_seen));
	int n = 0;

	for (size_t i = 0; i < c->table.n; i++) {
		const struct credential_entry *e = &c->table.entries[i];
		bool is_late = e->used_ms < since_wall_ms && e->row.last_used_ms < since_wall_ms;

		if (e->machine < 0 || is_late || is_seen[e->machine])
			continue;
		is_seen[e->machine] = true;
		n++;
	}
	free(is_seen);
	return n;
}

int64_t credentials_n_wrong(const struct credentials *c) { return c->n_wrong; }

/* ---- life ---- */

struct credentials *credentials_new(struct loop *l, struct store *s)
{
	struct credentials *c = xcalloc(1, sizeof(*c));

	c->loop = l;
	c->store = s;
	c->wrong = rate_limit_new(CREDENTIALS_WRONG_PER_MINUTE, ADDRESSES_MAX);
	c->bell = bell_new(l, read_credentials, c);
	c->write_uses = timer_new(l, on_write_uses, c);
	c->unread_lines.longest_ms = LOG_LONGEST_PAUSE_MS;
	timer_start(c->write_uses, WRITE_USES_MS);
	bell_now(c->bell);
	return c;
}

void credentials_on_change(struct credentials *c, void (*on_change)(void *owner), void *owner)
{
	c->on_change = on_change;
	c->change_owner = owner;
}

void credentials_close(struct credentials *c, void (*on_closed)(void *owner), void *owner)
{
	struct credentials_wait *waiting = c->next;

	c->is_closing = true;
	c->on_closed = on_closed;
	c->closed_owner = owner;
	c->next = NULL;
	bell_stop(c->bell);
	timer_close(c->write_uses);
	c->n_operations++;
	write_uses(c);
	end_waits(waiting, ERR_CLOSING);
	credentials_let_go(c);
}

void credentials_free(struct credentials *c)
{
	if (!c)
		return;
	bell_free(c->bell);
	credential_table_release(&c->table);
	rate_limit_free(c->wrong);
	free(c);
}
