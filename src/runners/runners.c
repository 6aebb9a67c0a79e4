#include "runners/runners.h"

#include "db/seats.h"
#include "runners/claim.h"
#include "runners/job_documents.h"
#include "runners/leases.h"

enum { REGISTERED_MAX = 1024, STRANGERS_MAX = 1024 };

static void on_tokens_read(void *owner)
{
	struct runners *r = owner;

	claims_on_tokens(r->claims);
	leases_on_tokens(r->leases);
	if (r->documents)
		job_documents_check(r->documents);
}

static void on_topics(unsigned topics, void *owner)
{
	struct runners *r = owner;

	if (r->is_closing)
		return;
	if (topics & STORE_TOKENS)
		credentials_on_tokens(r->credentials);
	if (topics & STORE_LEASES)
		leases_on_ended(r->leases);
	if (topics & STORE_QUEUE)
		claims_on_queue(r->claims);
}

static void on_runners_seat(enum seat seat, bool has_seat, void *owner)
{
	struct runners *r = owner;

	(void)seat;
	if (has_seat && !r->is_stopping && r->leases)
		leases_on_seat(r->leases);
}

struct runners *runners_new(
    struct loop *l, struct store *s, struct http_client *c, struct http_server *h, const struct secret *callback_key)
{
	struct runners *r = xcalloc(1, sizeof *r);

	STAILQ_INIT(&r->to_be_read);

	r->loop = l;
	r->store = s;
	r->keys = issuer_keys_new(l, c, &r->counters);
	r->registered = rate_limit_new(REPORTS_PER_MINUTE, REGISTERED_MAX);
	r->strangers = rate_limit_new(REPORTS_PER_MINUTE, STRANGERS_MAX);
	r->callback_key = callback_key;
	report_add_routes(r, h);
	r->credentials = credentials_new(l, s);
	r->claims = claims_new(r, h);
	r->leases = leases_new(r, h);
	credentials_on_change(r->credentials, on_tokens_read, r);
	store_subscribe(s, STORE_QUEUE | STORE_LEASES | STORE_TOKENS, on_topics, r);
	store_add_part(s, &(struct seat_part){SEAT_DEADLINES, on_runners_seat, NULL, r});
	return r;
}

void runners_accept_documents(struct runners *r, struct http_server *h, struct logs *logs)
{
	r->documents = job_documents_new(r, h, logs);
}

void runners_configure(struct runners *r, struct config *c)
{
	struct config *old = r->config;

	/* Such a snapshot has no vendors, so Outpost would ignore their reports, which they do not send again. */
	if (!config_is_registry_loaded(c))
		return;
	r->config = config_ref(c);
	issuer_keys_configure(r->keys, c);
	claims_configure(r->claims);
	if (r->documents)
		job_documents_check(r->documents);
	config_unref(old);
}

static void report_runners_closed(void *p)
{
	struct runners *r = p;

	claims_free(r->claims);
	leases_free(r->leases);
	job_documents_free(r->documents);
	r->claims = NULL;
	r->leases = NULL;
	r->documents = NULL;
	r->on_closed(r->closed_owner);
}

void runners_free(struct runners *r)
{
	if (!r)
		return;
	assert(r->is_closing && r->n_holds == 0);
	credentials_free(r->credentials);
	rate_limit_free(r->registered);
	rate_limit_free(r->strangers);
	config_unref(r->config);
	free(r);
}

void runners_hold(struct runners *r) { r->n_holds++; }

void runners_let_go(struct runners *r)
{
	assert(r->n_holds > 0);
	if (--r->n_holds == 0 && r->is_closing)
		loop_reap(r->loop, report_runners_closed, r);
}

static void on_runners_part_closed(void *owner) { runners_let_go(owner); }

void alarm_init(struct alarm *a, struct loop *l, void (*on_due)(struct timer *t), void *owner)
{
	*a = (struct alarm){.loop = l, .timer = timer_new(l, on_due, owner)};
}

void alarm_set(struct alarm *a, int64_t due_ms)
{
	if (a->due_ms && a->due_ms <= due_ms)
		return;
	a->due_ms = due_ms;
	timer_start(a->timer, due_ms - loop_now_ms(a->loop));
}

void runners_stop(struct runners *r)
{
	if (r->is_stopping)
		return;
	r->is_stopping = true;
	claims_stop(r->claims);
	leases_stop(r->leases);
	if (r->documents)
		job_documents_stop(r->documents);
}

void runners_close(struct runners *r, void (*on_closed)(void *owner), void *owner)
{
	runners_stop(r);
	r->is_closing = true;
	r->on_closed = on_closed;
	r->closed_owner = owner;
	runners_hold(r);
	issuer_keys_close(r->keys, on_runners_part_closed, r);
	runners_hold(r);
	credentials_close(r->credentials, on_runners_part_closed, r);
}

struct credentials *runners_credentials(struct runners *r) { return r->credentials; }

const struct runners_counters *runners_counters(const struct runners *r) { return &r->counters; }

void runners_read_gauges(const struct runners *r, struct runners_gauges *ret)
{
	*ret = (struct runners_gauges){
	    .n_claims_waiting = claims_n_waiting(r->claims),
	    .n_heartbeats_waiting = leases_n_waiting(r->leases),
	    .n_machines = credentials_n_machines_since(r->credentials, clock_wall_ms() - RUNNERS_LATELY_MS),
	    .n_wrong_tokens = credentials_n_wrong(r->credentials),
	};
}
