/* The real dispatcher with all layers below it: a store in a temporary folder, GitHub and a vendor's server on
 * threads. The rig remembers all requests to both; the test sets their answers. */
#pragma once

#include "config_folder.h"
#include "empty_store.h"
#include "fake_github.h"

#include "db/store_internal.h"
#include "dispatch/dispatch.h"
#include "replaces.h"
#include "store/changes.h"
#include "store/deliveries.h"
#include "store/dispatches.h"
#include "store/maintenance.h"
#include "store/outbox.h"
#include "store/plans.h"
#include "webhook/payload.h"

#define UPSTREAM "pytorch/pytorch"
#define SHA_A    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SHA_BASE "2222222222222222222222222222222222222222"
#define SHA_TIP  "cccccccccccccccccccccccccccccccccccccccc"
#define SHA_TIP2 "dddddddddddddddddddddddddddddddddddddddd"

#define CALLBACK_KEY "callback-key"

struct rig {
	struct fake_github *gh;
	struct secret *callback_key;
	struct store *store;
	struct config *config;
	struct dispatch *dispatch;
	struct head_reader heads; /* for the tests with due work */

	/* under gh->lock */
	json_t *dispatches;          /* [{"repository","event_type","client_payload"}] */
	const char *dispatch_status; /* NULL: 204; else "502 Bad", for dispatches */
	int n_dispatch_failures;     /* this number of dispatches gets dispatch_status; -1: all */
	const char *pulls, *deliveries, *branch_sha, *files, *pull; /* JSON texts; files NULL: 500 */
	const char *comparison;                                     /* JSON text; NULL: 404 */
	const char *redelivery_status;

	/* the vendor's server */
	struct loopback *vendor;
	pthread_mutex_t lock; /* guards the fields below */
	char **hooks;         /* whole requests */
	const char *hook_status;
	const char *hook_headers;
	bool is_hanging;
};

REPLACES(http_call_start);
extern __typeof__(http_call_start) real_http_call_start __asm__("__real_http_call_start");

/* No answer is late, however busy the machine is. */
void http_call_start(struct http_client *c, struct http_call *call)
{
	call->total_timeout_ms = 3600 * 1000;
	real_http_call_start(c, call);
}

/* ---- GitHub ---- */

static struct rig *the_rig;

static inline char *rig_dispatch_answer(struct rig *r, const char *request)
{
	const char *from = strstr(request, "/repos/") + 7, *body = strstr(request, "\r\n\r\n") + 4;
	char *repository = xstrndup(from, (size_t)(strstr(from, "/dispatches ") - from));
	json_t *o = NULL;

	assert_int_equal(json_parse(body, strlen(body), &o, NULL), 0);
	json_object_set_new(o, "repository", json_string(repository));
	json_array_append_new(r->dispatches, o);
	free(repository);
	if (!r->dispatch_status || r->n_dispatch_failures == 0)
		return NULL;
	if (r->n_dispatch_failures > 0)
		r->n_dispatch_failures--;
	return fake_answer(r->dispatch_status, "", "{\"message\":\"no\"}");
}

static inline char *rig_github_answer(struct fake_github *f, const char *request)
{
	struct rig *r = the_rig;

	(void)f;
	if (strstr(request, "/dispatches HTTP"))
		return rig_dispatch_answer(r, request);
	if (strstr(request, "/attempts HTTP"))
		return fake_answer(r->redelivery_status, "", "{}");
	if (strncmp(request, "GET /app/hook/deliveries", 24) == 0)
		return fake_answer("200 OK", "", r->deliveries);
	if (strstr(request, "/files"))
		return r->files ? fake_answer("200 OK", "", r->files) : fake_answer("500 Broken", "", "{}");
	if (strstr(request, "/branches/")) {
		char *body = xasprintf("{\"name\":\"main\",\"commit\":{\"sha\":\"%s\",\"author\":"
				       "{\"login\":\"carol\"},\"commit\":{\"message\":\"Land it\","
				       "\"author\":{\"name\":\"Carol\"}}}}",
		    r->branch_sha);
		char *answer = fake_answer("200 OK", "", body);

		free(body);
		return answer;
	}
	if (strstr(request, "/compare/"))
		return r->comparison ? fake_answer("200 OK", "", r->comparison)
				     : fake_answer("404 Not Found", "", "{}");
	if (strstr(request, "/pulls?"))
		return fake_answer("200 OK", "", r->pulls);
	if (strstr(request, "/pulls/"))
		return fake_answer("200 OK", "", r->pull);
	return fake_answer("404 Not Found", "", "{}");
}

/* ---- the vendor ---- */

static inline void rig_serve_vendor(struct loopback *lb, int fd)
{
	struct rig *r = lb->owner;
	struct buf in = BUF_INIT(1 << 24);

	while (loopback_read_request(lb, fd, &in)) {
		char *answer = NULL;

		pthread_mutex_lock(&r->lock);
		strv_add(&r->hooks, buf_str(&in));
		if (!r->is_hanging)
			answer = fake_answer(r->hook_status, r->hook_headers, "{}");
		pthread_mutex_unlock(&r->lock);
		if (!answer) {
			loopback_wait_for_close(fd);
			break;
		}
		loopback_send(fd, answer, strlen(answer));
		free(answer);
	}
	buf_release(&in);
}

/* ---- up and down ---- */

static inline void rig_on_closed(void *owner) { *(bool *)owner = true; }

static inline void rig_write_accelerator(const char *name, const char *more)
{
	char *path = xasprintf("accelerators.d/%s.yml", name);
	char *text = xasprintf("name: %s\ntitle: T\nlevel: L2\n%s", name, more);

	folder_write(path, text);
	free(path);
	free(text);
}

static inline void rig_write_config(struct rig *r)
{
	char *hook = xasprintf("runners: [{name: lab, webhook: {url: \"http://127.0.0.1:%d/hook?token=hush\","
			       " secret: hook}}]\ntriggers: {pull_request: {drafts: false}}\n",
	    r->vendor->port);

	folder_write("outpost.yml", MINIMAL_YML "outgoing: {allow_networks: [127.0.0.0/8]}\n"
						"reconcile: {interval: 1h}\n"
						"accelerators: {directory: accelerators.d}\n");
	folder_write("secrets/hook/hook", "hook-secret\n");
	rig_write_accelerator("gh", "runners: [{name: ci, github: {repository: vendor/ci}}]\n");
	rig_write_accelerator("picky", "trust: members\nrunners: [{name: ci, github: {repository: vendor/ci}}]\n");
	rig_write_accelerator("hook", hook);
	rig_write_accelerator("pathy", "runners: [{name: ci, github: {repository: other/pathy}}]\n"
				       "triggers: {pull_request: {paths: [\"aten/**\"]}}\n");
	free(hook);
}

static inline int rig_set_up(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	the_rig = r;
	folder_setup(state);
	assert_int_equal(fake_set_up((void **)&r->gh), 0);
	pthread_mutex_init(&r->lock, NULL);
	r->dispatches = json_array();
	r->pulls = r->deliveries = "[]";
	r->pull = "{}";
	r->files = "[{\"filename\":\"README.md\"}]";
	r->branch_sha = SHA_TIP;
	r->redelivery_status = "202 Accepted";
	r->hook_status = "200 OK";
	r->hook_headers = "";
	r->vendor = loopback_start(rig_serve_vendor, r);
	fake_set(r->gh, answer, rig_github_answer);
	log_setup(LOG_ERROR + 1, LOG_TEXT);
	rig_write_config(r);
	*state = r;
	return 0;
}

/* Begins, or begins again on what an earlier run left. */
static inline void rig_start_store(struct rig *r)
{
	const struct store_options options = {
	    .state_dir = "state", .recover = store_recover, .after_silence = store_after_silence};
	struct error e = {0};

	r->config = folder_load();
	empty_store_put("state");
	if (store_open(r->gh->loop, &options, &r->store, &e))
		fail_msg("%s", e.text);
}

static inline void rig_start_dispatch(struct rig *r)
{
	struct secret *old = r->callback_key;
	const struct dispatch_deps deps = {
	    .loop = r->gh->loop,
	    .store = r->store,
	    .github = r->gh->github,
	    .http_client = r->gh->http,
	    .parse_event = event_parse,
	    .heads = r->heads,
	    .callback_key = r->callback_key = secret_of(CALLBACK_KEY),
	};

	secret_unref(old);
	r->dispatch = dispatch_new(&deps, r->config);
}

static inline void rig_stop(struct rig *r)
{
	bool is_closed = false;

	dispatch_close(r->dispatch, rig_on_closed, &is_closed);
	assert_false(is_closed);
	loop_run_until(r->gh->loop, &is_closed);
	assert_true(is_closed);
	is_closed = false;
	store_close(r->store, rig_on_closed, &is_closed);
	loop_run_until(r->gh->loop, &is_closed);
	dispatch_free(r->dispatch);
	r->dispatch = NULL;
	r->store = NULL;
	config_unref(r->config);
}

static inline int rig_tear_down(void **state)
{
	struct rig *r = *state;

	if (r->dispatch)
		rig_stop(r);
	secret_unref(r->callback_key);
	loopback_stop(r->vendor);
	fake_tear_down((void **)&r->gh);
	json_decref(r->dispatches);
	strv_free(r->hooks);
	pthread_mutex_destroy(&r->lock);
	free(r);
	return folder_teardown(state);
}

/* ---- counters ---- */

static inline struct dispatch_counters rig_counters(struct rig *r)
{
	struct dispatch_counters n;

	dispatch_read_counters(r->dispatch, &n);
	return n;
}

static inline int rig_n_hooks(struct rig *r)
{
	int n;

	pthread_mutex_lock(&r->lock);
	n = (int)strv_len((const char *const *)r->hooks);
	pthread_mutex_unlock(&r->lock);
	return n;
}

static inline int rig_n_dispatches(struct rig *r)
{
	int n;

	pthread_mutex_lock(&r->gh->lock);
	n = (int)json_array_size(r->dispatches);
	pthread_mutex_unlock(&r->gh->lock);
	return n;
}

/* For a wait that has failed: where the work stands. */
static inline void rig_print(struct rig *r)
{
	if (r->dispatch) {
		struct dispatch_counters n = rig_counters(r);

		print_error("%d in planning, %d in sending; deliveries: %" PRId64 " planned, %" PRId64
			    " ignored, %" PRId64 " failed; %" PRId64 " retries, %" PRId64 " dead\n",
		    n.n_planning, n.n_sending, n.n_deliveries_planned, n.n_deliveries_ignored, n.n_deliveries_failed,
		    n.n_retries, n.n_dead);
	}
	if (r->store) {
		struct store_stats s;

		store_stats(r->store, &s);
		print_error("the store: %" PRId64 " operations and %" PRId64 " queries wait; %" PRId64
			    " commits, %" PRId64 " failed\n",
		    s.n_queued_ops, r->store->n_queries, s.n_commits, s.n_failed_commits);
	}
	print_error("%d hooks, %d dispatches\n", rig_n_hooks(r), rig_n_dispatches(r));
}

/* ---- waiting ---- */

struct rig_wait {
	struct rig *r;
	bool (*is_so)(struct rig *r);
	bool is_over;
	int64_t until_ms;
	struct timer *timer;
};

static inline void rig_look(struct timer *t)
{
	struct rig_wait *w = timer_owner(t);

	w->is_over = w->is_so(w->r) || clock_mono_ms() > w->until_ms;
	if (!w->is_over)
		timer_start(t, 2);
}

enum { RIG_WAIT_MS = 120 * 1000 }; /* for an event that must happen; a passing test never waits so long */

/* Runs the loop until the condition holds; fails the test if it never does. */
static inline void rig_wait_until(struct rig *r, bool (*is_so)(struct rig *r))
{
	struct rig_wait w = {.r = r, .is_so = is_so, .until_ms = clock_mono_ms() + RIG_WAIT_MS};

	w.timer = timer_new(r->gh->loop, rig_look, &w);
	timer_start(w.timer, 0);
	loop_run_until(r->gh->loop, &w.is_over);
	timer_close(w.timer);
	if (!is_so(r)) {
		rig_print(r);
		fail_msg("waited too long");
	}
}

static inline void rig_on_time(struct timer *t) { *(bool *)timer_owner(t) = true; }

static inline void rig_run_ms(struct rig *r, int64_t ms)
{
	bool is_over = false;
	struct timer *t = timer_new(r->gh->loop, rig_on_time, &is_over);

	timer_start(t, ms);
	loop_run_until(r->gh->loop, &is_over);
	timer_close(t);
}

/* ---- operations of the store, waited for ---- */

#define RIG_OP(type, name)                                                                                             \
	static bool name##_is_done;                                                                                    \
	static inline void name##_on_done(type *x)                                                                     \
	{                                                                                                              \
		(void)x;                                                                                               \
		name##_is_done = true;                                                                                 \
	}
RIG_OP(struct store_op, rig_op)
RIG_OP(struct store_query, rig_query)

/* Stores a webhook and passes it to the dispatcher, if it runs, as intake does. Returns whether it was taken over. */
static inline bool rig_deliver(struct rig *r, const char *guid, const char *event, const char *body)
{
	struct delivery delivery = {.guid = xstrdup(guid), .event = xstrdup(event), .body = xstrdup(body)};
	bool is_taken;

	struct put_delivery put = {
	    .op.done = rig_op_on_done,
	    .guid = guid,
	    .event = event,
	    .action = "",
	    .repository = UPSTREAM,
	    .body = body,
	    .body_bytes = strlen(body),
	    .now_ms = clock_wall_ms(),
	    .is_passed_on = r->dispatch != NULL,
	};

	rig_op_is_done = false;
	assert_int_equal(store_put_delivery(r->store, &put), 0);
	loop_run_until(r->gh->loop, &rig_op_is_done);
	assert_int_equal(put.op.err, 0);
	delivery.id = put.delivery_id;
	delivery.received_ms = put.now_ms;
	delivery.body_len = put.body_bytes;
	if (put.delivery_id && r->dispatch)
		dispatch_accept(r->dispatch, &delivery);
	is_taken = !delivery.body;
	delivery_release(&delivery);
	return is_taken;
}

/* "accelerator:state" of each dispatch, by accelerator, newest round only; free(). */
static inline char *rig_states(struct rig *r)
{
	struct list_dispatches q = {.q.done = rig_query_on_done, .repository = UPSTREAM, .limit = 100};
	struct buf b = BUF_INIT(4096);
	char *lines[100];
	size_t n = 0;

	rig_query_is_done = false;
	assert_int_equal(store_list_dispatches(r->store, &q), 0);
	loop_run_until(r->gh->loop, &rig_query_is_done);
	assert_int_equal(q.q.err, 0);
	for (size_t i = 0; i < q.n; i++)
		lines[n++] = xasprintf("%s:%s", q.list[i].accelerator, q.list[i].state);
	list_dispatches_release(&q);
	for (size_t done = 0; done < n; done++) { /* smallest first */
		size_t least = done;

		for (size_t i = done; i < n; i++)
			if (strcmp(lines[i], lines[least]) < 0)
				least = i;
		buf_appendf(&b, "%s%s", done ? " " : "", lines[least]);
		free(lines[least]);
		lines[least] = lines[done];
	}
	return b.data ? buf_detach(&b) : xstrdup("");
}

/* Waits until the dispatches' states are these. */
static inline void rig_expect_states(struct rig *r, const char *expected)
{
	int64_t until_ms = clock_mono_ms() + RIG_WAIT_MS;

	for (;;) {
		char *states = rig_states(r);
		bool is_over = str_eq(states, expected) || clock_mono_ms() > until_ms;

		if (is_over && !str_eq(states, expected))
			rig_print(r);
		if (is_over)
			assert_string_equal(states, expected);
		free(states);
		if (is_over)
			return;
		rig_run_ms(r, 2);
	}
}

static inline void rig_expect_delivery(struct rig *r, const char *guid, const char *state, const char *error)
{
	struct get_delivery q = {.q.done = rig_query_on_done, .guid = guid};

	rig_query_is_done = false;
	assert_int_equal(store_get_delivery(r->store, &q), 0);
	loop_run_until(r->gh->loop, &rig_query_is_done);
	assert_int_equal(q.q.err, 0);
	assert_string_equal(q.delivery.state, state);
	if (error)
		assert_string_equal(q.delivery.error, error);
	delivery_release(&q.delivery);
}

/* ---- bodies ---- free() */

struct rig_pull {
	const char *action, *sha, *association, *updated_at, *state;
	int number;
	bool is_draft;
};

static inline char *rig_pull_object(const struct rig_pull *p)
{
	return xasprintf("{\"number\":%d,\"state\":\"%s\",\"title\":\"Fix it\",\"user\":{\"login\":\"alice\"},"
			 "\"author_association\":\"%s\",\"draft\":%s,\"labels\":[],\"created_at\":\"%s\","
			 "\"updated_at\":\"%s\",\"head\":{\"ref\":\"fix\",\"sha\":\"%s\"},"
			 "\"base\":{\"ref\":\"main\",\"sha\":\"" SHA_BASE "\"}}",
	    p->number ? p->number : 7, p->state ? p->state : "open", p->association ? p->association : "MEMBER",
	    p->is_draft ? "true" : "false", "2026-01-01T00:00:00Z",
	    p->updated_at ? p->updated_at : "2026-01-01T00:00:00Z", p->sha ? p->sha : SHA_A);
}

static inline char *rig_pull_body(const struct rig_pull *p)
{
	char *pull = rig_pull_object(p);
	char *body = xasprintf("{\"action\":\"%s\",\"number\":%d,\"pull_request\":%s,\"repository\":{\"full_name\":"
			       "\"" UPSTREAM "\"},\"sender\":{\"login\":\"alice\"}}",
	    p->action, p->number ? p->number : 7, pull);

	free(pull);
	return body;
}

/* Stores a pull_request webhook; the dispatcher plans it. */
#define rig_pull(r, guid_text, ...)                                                                                    \
	do {                                                                                                           \
		struct rig_pull pull_ = {__VA_ARGS__};                                                                 \
		char *body_ = rig_pull_body(&pull_);                                                                   \
		rig_deliver(r, guid_text, "pull_request", body_);                                                      \
		free(body_);                                                                                           \
	} while (0)
