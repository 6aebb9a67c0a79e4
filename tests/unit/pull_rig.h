/* The server's side of pull runners on a real server, with a real token. Each test sets the state of leases: every
 * operation on them waits until the test answers it. */
#pragma once

#include "parts_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "replaces.h"
#include "runners/claim.h"
#include "runners/leases.h"
#include "runners/runners_internal.h"
#include "secret_of.h"
#include "store/claims.h"
#include "store/credentials.h"
#include "store/leases.h"

REPLACES(store_claim_dispatch);
REPLACES(store_renew_lease);
REPLACES(store_return_lease);
REPLACES(store_list_leases);
REPLACES(list_leases_release);
REPLACES(store_count_pull_work);

#define MACHINE  "npu-17"
#define CLAIM    "/api/v1/runner/claim"
#define RENEW    "/api/v1/runner/leases/lease1/renew"
#define GIVEBACK "/api/v1/runner/leases/lease1/return"
#define SHA      "abcdef0123456789abcdef0123456789abcdef01"

/* ---- a fake store of leases ---- */

static struct {
	int submit_err; /* of all three */
	struct claim_dispatch *claim;
	struct renew_lease *renew;
	struct return_lease *giving_back;
	bool was_known; /* the claim_id had its lease before */
	struct list_leases *list;
	int n_claims, n_renews, n_returns, n_lists;
	char claimed_by[64], chosen[128]; /* of the last claim: its claim_id, "runner:max …" */
	char returned[64], reason[200];
} fake;

int store_claim_dispatch(struct store *s, struct claim_dispatch *op)
{
	size_t used = 0;

	(void)s;
	fake.n_claims++;
	if (fake.submit_err)
		return fake.submit_err;
	assert_null(fake.claim); /* one at a time for an accelerator */
	fake.claim = op;
	snprintf(fake.claimed_by, sizeof(fake.claimed_by), "%s", op->claim_id);
	fake.chosen[0] = '\0';
	for (size_t i = 0; i < op->n_choices && used < sizeof(fake.chosen); i++)
		used += (size_t)snprintf(fake.chosen + used, sizeof(fake.chosen) - used, "%s:%d ",
		    op->choices[i].runner, op->choices[i].max_parallel);
	return 0;
}

int store_renew_lease(struct store *s, struct renew_lease *op)
{
	(void)s;
	fake.n_renews++;
	if (fake.submit_err)
		return fake.submit_err;
	assert_null(fake.renew);
	fake.renew = op;
	return 0;
}

int store_return_lease(struct store *s, struct return_lease *op)
{
	(void)s;
	fake.n_returns++;
	if (fake.submit_err)
		return fake.submit_err;
	assert_null(fake.giving_back);
	fake.giving_back = op;
	snprintf(fake.returned, sizeof(fake.returned), "%s", op->lease_id);
	snprintf(fake.reason, sizeof(fake.reason), "%s", op->reason);
	return 0;
}

int store_list_leases(struct store *s, struct list_leases *q)
{
	(void)s;
	fake.n_lists++;
	if (fake.submit_err)
		return fake.submit_err;
	assert_null(fake.list);
	fake.list = q;
	return 0;
}

void list_leases_release(struct list_leases *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->list[i].id);
	FREE_AND_NULL(q->list);
	q->n = 0;
}

/* No test here queries the waiting work; the tests of the built programs do. */
int store_count_pull_work(struct store *s, struct count_pull_work *q)
{
	(void)s;
	(void)q;
	return ERR_BUSY;
}

static inline void answer_claim(const char *lease_id, int err)
{
	struct claim_dispatch *op = fake.claim;

	assert_non_null(op);
	fake.claim = NULL;
	op->op.err = err;
	op->is_found = lease_id != NULL;
	op->was_known = fake.was_known;
	if (lease_id)
		op->offer = (struct lease_offer){
		    .lease_id = xstrdup(lease_id),
		    .lease_ms = op->lease_ms,
		    .attempt = 1,
		    .job_id = 42,
		    .dispatch_id = xstrdup("dispatch1"),
		    .accelerator = xstrdup(op->accelerator),
		    .runner = xstrdup(op->choices[0].runner),
		    .run_id = xstrdup("dispatch1"),
		    .kind = CHANGE_PULL_REQUEST,
		    .repository = xstrdup("pytorch/pytorch"),
		    .head_sha = xstrdup(SHA),
		    .number = 7,
		    .event_type = xstrdup("pull_request"),
		    .delivery_id = xstrdup("guid"),
		};
	op->op.done(&op->op);
}

static inline void answer_renew(enum lease_word word, const char *reason, int err)
{
	struct renew_lease *op = fake.renew;

	assert_non_null(op);
	fake.renew = NULL;
	op->op.err = err;
	op->word = word;
	snprintf(op->reason, sizeof(op->reason), "%s", reason);
	op->op.done(&op->op);
}

static inline void answer_return(int err)
{
	struct return_lease *op = fake.giving_back;

	assert_non_null(op);
	fake.giving_back = NULL;
	op->op.err = err;
	op->op.done(&op->op);
}

/* active: the id of the only active lease; NULL: no lease is active. */
static inline void answer_list(const char *active, int err)
{
	struct list_leases *q = fake.list;

	assert_non_null(q);
	fake.list = NULL;
	q->q.err = err;
	if (active) {
		q->list = xcalloc(1, sizeof(*q->list));
		q->n = 1;
		q->list[0].id = xstrdup(active);
	}
	q->q.done(&q->q);
}

/* ---- the parts ---- */

struct pull {
	struct parts parts;
	struct runners *runners;
	struct secret *callback_key;
	char token[CREDENTIAL_TEXT_BYTES];
	char *header; /* Authorization: … */
	const char *headers[2];
	struct timer *poll;
	const int *polled;
	int (*count)(struct pull *p);
	int n_expected;
	bool is_so, is_closing, is_closed;
};

/* ---- waiting without a callback ---- */

static inline void pull_on_poll(struct timer *t)
{
	struct pull *p = timer_owner(t);

	if ((p->count ? p->count(p) : *p->polled) == p->n_expected)
		p->is_so = true;
	else
		timer_start(t, 1);
}

static inline void pull_poll(struct pull *p, const int *polled, int (*count)(struct pull *p), int n)
{
	p->polled = polled;
	p->count = count;
	p->n_expected = n;
	p->is_so = false;
	timer_start(p->poll, 0);
	loop_run_until(p->parts.loop, &p->is_so);
}

/* Runs until *n has the expected value. */
static inline void until(struct pull *p, const int *n, int n_expected) { pull_poll(p, n, NULL, n_expected); }

static inline void until_counted(struct pull *p, int (*count)(struct pull *p), int n_expected)
{
	pull_poll(p, NULL, count, n_expected);
}

static inline int pull_n_held(struct pull *p)
{
	return claims_n_waiting(p->runners->claims) + leases_n_waiting(p->runners->leases);
}

static inline int pull_n_connections(struct pull *p) { return http_server_n_connections(p->parts.server); }

/* Runs until this number of claims and heartbeats is held. */
static inline void until_held(struct pull *p, int n) { until_counted(p, pull_n_held, n); }

/* Runs until the server has noticed that every client vanished. */
static inline void until_gone(struct pull *p) { until_counted(p, pull_n_connections, 0); }

/* ---- up and down ---- */

static inline void pull_write(const char *name, const char *runners)
{
	char *path = xasprintf("accelerators.d/%s.yml", name);
	char *text = xasprintf("name: %s\ntitle: %s\nlevel: L2\nrunners:\n%s", name, name, runners);

	folder_write(path, text);
	free(path);
	free(text);
}

static inline void pull_reload(struct pull *p)
{
	config_unref(p->parts.config);
	p->parts.config = folder_load();
	runners_configure(p->runners, p->parts.config);
}

struct pull_known {
	struct credentials_wait wait;
	int n;
};

static inline void pull_on_known(struct credentials_wait *w)
{
	assert_int_equal(w->err, 0);
	CONTAINER_OF(w, struct pull_known, wait)->n = 1;
}

struct pull_added {
	struct add_token add;
	int n;
};

static inline void pull_on_added(struct store_op *op)
{
	assert_int_equal(op->err, 0);
	CONTAINER_OF(op, struct pull_added, add.op)->n = 1;
}

/* Adds a token and waits until it is known. */
static inline int64_t pull_add_token(struct pull *p, enum token_kind kind, const char *accelerator, const char *name)
{
	struct pull_added added = {
	    .add =
		{
		    .op.done = pull_on_added,
		    .kind = kind,
		    .accelerator = accelerator,
		    .name = name,
		    .now_ms = clock_wall_ms(),
		},
	};
	struct pull_known known = {.wait.done = pull_on_known};

	credential_make(kind, p->token);
	credential_hash(p->token, added.add.hash);
	assert_int_equal(store_add_token(p->parts.store, &added.add), 0);
	until(p, &added.n, 1);
	credentials_await(p->runners->credentials, &known.wait);
	until(p, &known.n, 1);
	free(p->header);
	p->header = xasprintf("Authorization: Bearer %s", p->token);
	p->headers[0] = p->header;
	return added.add.id;
}

struct pull_revoked {
	struct revoke_token revoke;
	int n;
};

static inline void pull_on_revoked(struct store_op *op)
{
	struct pull_revoked *r = CONTAINER_OF(op, struct pull_revoked, revoke.op);

	assert_int_equal(op->err, 0);
	assert_int_equal(r->revoke.n_revoked, 1);
	r->n = 1;
}

/* The machine's only token, and waits until that is known. */
static inline void pull_revoke(struct pull *p)
{
	struct pull_revoked revoked = {
	    .revoke =
		{
		    .op.done = pull_on_revoked,
		    .kind = TOKEN_RUNNER,
		    .accelerator = "npu",
		    .name = MACHINE,
		    .now_ms = clock_wall_ms(),
		},
	};
	struct pull_known known = {.wait.done = pull_on_known};

	assert_int_equal(store_revoke_token(p->parts.store, &revoked.revoke), 0);
	until(p, &revoked.n, 1);
	credentials_await(p->runners->credentials, &known.wait);
	until(p, &known.n, 1);
}

static inline int pull_set_up(void **state)
{
	struct pull *p = xcalloc(1, sizeof(*p));

	folder_setup(state);
	memset(&fake, 0, sizeof(fake));
	folder_write("outpost.yml", MINIMAL_YML "accelerators:\n  directory: accelerators.d\n");
	pull_write("npu", "  - {name: big, pull: {labels: [gpu, big], max_parallel: 3}}\n"
			  "  - {name: ci, github: {repository: a/b}}\n"
			  "  - {name: small, pull: {labels: [gpu]}}\n");
	parts_open(&p->parts);
	p->callback_key = secret_of("k");
	p->runners = runners_new(p->parts.loop, p->parts.store, p->parts.client, p->parts.server, p->callback_key);
	runners_configure(p->runners, p->parts.config);
	p->poll = timer_new(p->parts.loop, pull_on_poll, p);
	pull_add_token(p, TOKEN_RUNNER, "npu", MACHINE);
	*state = p;
	return 0;
}

static inline int pull_tear_down(void **state)
{
	struct pull *p = *state;

	fake.submit_err = 0;
	if (!p->is_closing)
		runners_close(p->runners, parts_on_closed, &p->is_closed);
	loop_run_until(p->parts.loop, &p->is_closed);
	parts_close_server(&p->parts);
	timer_close(p->poll);
	parts_close(&p->parts);
	runners_free(p->runners);
	secret_unref(p->callback_key);
	free(p->header);
	free(p);
	return folder_teardown(state);
}

/* ---- asking ---- */

#define CLAIM_BODY(id, labels, wait)                                                                                   \
	"{\"name\":\"" MACHINE "\",\"claim_id\":\"" id "\",\"labels\":" labels ",\"wait\":" wait "}"

static inline void pull_ask(struct pull *p, struct ask *a, const char *path, const char *body)
{
	ask_start(&p->parts, a, path, p->headers, body, strlen(body));
}

/* Waits for the answer, which must have this status and contain `expected`; releases. */
static inline void pull_expect(struct pull *p, struct ask *a, int status, const char *expected)
{
	int got = ask_wait(&p->parts, a);

	if (got != status || !strstr(buf_str(&a->call.answer), expected))
		fail_msg("%d %s", got, buf_str(&a->call.answer));
	ask_release(a);
}

/* A client that can vanish: returns its socket after sending the request. */
static inline int pull_ask_raw(struct pull *p, const char *path, const char *body)
{
	struct sockaddr_in sin = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)strtol(strrchr(p->parts.url, ':') + 1, NULL, 10)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *text = xasprintf(
	    "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: %zu\r\n\r\n%s", path, p->header, strlen(body), body);

	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	free(text);
	return fd;
}

/* Closes the connection at once, with a reset. */
static inline void pull_vanish(int fd)
{
	const struct linger hard = {.l_onoff = 1, .l_linger = 0};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	close(fd);
}
