#include "runners/credentials.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runners/credential_table.h"
#include "runners/rate_limit.h"

enum {
	ADDRESSES_MAX = 1024, /* with wrong tokens, in one minute */
	WRITE_USES_MS = 30 * 1000,
	READ_AGAIN_MS = 1000,
};

struct credentials {
	struct loop *loop;
	struct store *store;
	struct credential_table table;
	struct rate_limit *wrong;
	int64_t n_wrong;
	struct list_tokens list;
	bool is_read, is_reading, is_outdated, is_closing;
	struct credentials_wait *now, *next; /* for the read in hand, for the one after it */
	struct timer *read_again, *write_uses;
	int n_in_hand; /* of the store's */
	void (*on_change)(void *owner);
	void *change_owner;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* ---- last uses into the store ---- */

struct use_writing {
	struct touch_tokens op;
	struct credentials *credentials;
	struct token_use *uses;
};

static void tell_closed(void *p)
{
	struct credentials *c = p;

	c->on_closed(c->closed_owner);
}

static void let_go(struct credentials *c)
{
	assert(c->n_in_hand > 0);
	if (--c->n_in_hand == 0 && c->is_closing)
		loop_reap(c->loop, tell_closed, c);
}

/* A use that could not be written is not missed: it is shown from memory, and the next one
 * comes soon. */
static void on_uses_written(struct store_op *op)
{
	struct use_writing *w = CONTAINER_OF(op, struct use_writing, op.op);
	struct credentials *c = w->credentials;

	free(w->uses);
	free(w);
	let_go(c);
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
		free(w->uses);
		free(w);
		return;
	}
	c->n_in_hand++;
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

static void start_reading(struct credentials *c);

static void tell_waiting(struct credentials_wait *list, int err)
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
	int err = q->err;

	c->is_reading = false;
	c->now = NULL;
	if (!err && !c->is_closing) {
		write_uses(c); /* of those, too, that are not in the list any more */
		credential_table_take(&c->table, &c->list);
		c->is_read = true;
	}
	if (err && !c->is_closing) {
		log_event(LOG_ERROR, "tokens_not_read", LOG_S("why", q->why.text));
		timer_start(c->read_again, READ_AGAIN_MS);
	}
	list_tokens_release(&c->list);
	if (!err && !c->is_closing && c->on_change)
		c->on_change(c->change_owner);
	tell_waiting(waiting, err);
	if (c->is_outdated && !c->is_closing)
		start_reading(c);
	let_go(c);
}

static void start_reading(struct credentials *c)
{
	int err;

	c->now = c->next;
	c->next = NULL;
	c->is_outdated = false;
	c->list = (struct list_tokens){.q.done = on_read, .only_valid = true};
	err = store_list_tokens(c->store, &c->list);
	if (err) {
		/* They stay waiting: the next try is theirs too. */
		c->next = c->now;
		c->now = NULL;
		timer_start(c->read_again, READ_AGAIN_MS);
		return;
	}
	c->is_reading = true;
	c->n_in_hand++;
}

static void on_read_again(struct timer *t)
{
	credentials_on_tokens(timer_owner(t));
}

void credentials_on_tokens(struct credentials *c)
{
	if (c->is_closing)
		return;
	if (c->is_reading)
		c->is_outdated = true;
	else
		start_reading(c);
}

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

/* ---- asking ---- */

/* Whoever has an IPv6 address has 2^64 of them. */
static const char *address_key(const char *address, char out[INET6_ADDRSTRLEN])
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET6, address, bytes) != 1)
		return address;
	memset(bytes + 8, 0, 8);
	return inet_ntop(AF_INET6, bytes, out, INET6_ADDRSTRLEN);
}

enum credential_verdict credentials_check(struct credentials *c, const char *text,
    const char *address, struct credential *ret, int *ret_retry_after_s)
{
	uint8_t hash[SHA256_BYTES];
	char key[INET6_ADDRSTRLEN];
	struct credential_entry *e = NULL;

	if (!c->is_read)
		return CREDENTIAL_UNREAD;
	if (credential_is_shaped(text)) {
		credential_hash(text, hash);
		e = credential_table_find(&c->table, hash);
	}
	if (!e) {
		c->n_wrong++;
		return rate_limit_take(c->wrong, address_key(address, key), loop_now_ms(c->loop),
			   ret_retry_after_s)
			   ? CREDENTIAL_WRONG
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

bool credentials_are_read(const struct credentials *c)
{
	return c->is_read;
}

bool credentials_has(const struct credentials *c, int64_t id)
{
	return credential_table_find_id(&c->table, id) != NULL;
}

bool credentials_last_use(
    const struct credentials *c, int64_t id, int64_t *ret_wall_ms, const char **ret_address)
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
	return credential_table_n_machines(&c->table, since_wall_ms);
}

int64_t credentials_n_wrong(const struct credentials *c)
{
	return c->n_wrong;
}

/* ---- life ---- */

struct credentials *credentials_new(struct loop *l, struct store *s)
{
	struct credentials *c = xcalloc(1, sizeof(*c));

	c->loop = l;
	c->store = s;
	c->wrong = rate_limit_new(CREDENTIALS_WRONG_PER_MINUTE, ADDRESSES_MAX);
	c->read_again = timer_new(l, on_read_again, c);
	c->write_uses = timer_new(l, on_write_uses, c);
	timer_start(c->write_uses, WRITE_USES_MS);
	start_reading(c);
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
	timer_close(c->read_again);
	timer_close(c->write_uses);
	c->n_in_hand++;
	write_uses(c);
	tell_waiting(waiting, ERR_CLOSING);
	let_go(c);
}

void credentials_free(struct credentials *c)
{
	if (!c)
		return;
	credential_table_release(&c->table);
	rate_limit_free(c->wrong);
	free(c);
}
