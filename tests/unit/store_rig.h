/* A store in a temporary folder, and one call for each operation: submit, wait, look. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include <ftw.h>

#include "empty_store.h"

#include "db/store.h"
#include "store/changes.h"
#include "store/deliveries.h"
#include "store/job_reports.h"
#include "store/maintenance.h"
#include "store/outbox.h"
#include "store/plans.h"
#include "store/published.h"
#include "store/registry.h"
#include "views/change.h"

#define UPSTREAM "pytorch/pytorch"
#define HEAD_A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEAD_B   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEAD_C   "cccccccccccccccccccccccccccccccccccccccc"
#define MINUTE   INT64_C(60000)
#define HOUR     (60 * MINUTE)
#define DAY      (24 * HOUR)
#define T0       INT64_C(1795176000000) /* 2026-11-20T12:00:00Z */

static struct loop *rig_loop;
static struct store *rig_store;
static char rig_dir[64];
static unsigned rig_topics;     /* topics that were notified since the last check */
static bool rig_has_all_topics; /* all at once */

static inline int rig_remove(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

/* What db_open() opens. free() */
static inline char *rig_path(void)
{
	return server_database() ? xstrdup(server_database()) : path_join(rig_dir, "outpost.db");
}

/* For a test of SQLite's plans or of its file. */
#define ONLY_ON_SQLITE()                                                                                               \
	do {                                                                                                           \
		if (server_database())                                                                                 \
			skip();                                                                                        \
	} while (0)

static inline void rig_on_topic(unsigned topics, void *owner)
{
	(void)owner;
	rig_topics |= topics;
	rig_has_all_topics |= topics == ~0u;
}

static inline int rig_open_with(const struct store_options *o, struct error *e)
{
	struct store_options options = *o;
	int rc;

	options.state_dir = rig_dir;
	options.database = server_database();
	options.recover = store_recover;
	options.after_silence = store_after_silence;
	rc = store_open(rig_loop, &options, &rig_store, e);
	if (rc == 0)
		store_subscribe(rig_store, ~0u, rig_on_topic, NULL);
	return rc;
}

/* When a store on a server begins to listen to the other nodes, it notifies all topics once. This waits for that, so that a test sees only
 * its own topics. */
static inline void rig_open(void)
{
	struct error e = {0};
	int rc = rig_open_with(&(struct store_options){0}, &e);

	if (rc)
		fail_msg("store_open: %s", e.text);
	rig_has_all_topics = false;
	if (server_database())
		loop_run_until(rig_loop, &rig_has_all_topics);
	rig_topics = 0;
}

static inline void rig_closed(void *is_closed) { *(bool *)is_closed = true; }

static inline void rig_close(void)
{
	bool is_closed = false;

	store_close(rig_store, rig_closed, &is_closed);
	loop_run_until(rig_loop, &is_closed);
	assert_true(is_closed);
	rig_store = NULL;
}

static inline void rig_reopen(void)
{
	rig_close();
	rig_open();
}

/* A loop and an empty folder, without a store. */
static inline int rig_setup_folder(void **state)
{
	(void)state;
	log_setup(LOG_ERROR, LOG_TEXT);
	snprintf(rig_dir, sizeof(rig_dir), "/tmp/outpost-store-XXXXXX");
	assert_non_null(mkdtemp(rig_dir));
	if (server_database())
		server_empty();
	rig_loop = loop_new();
	rig_topics = 0;
	return 0;
}

static inline int rig_setup(void **state)
{
	rig_setup_folder(state);
	if (!server_database())
		empty_store_put(rig_dir);
	rig_open();
	return 0;
}

static inline int rig_teardown(void **state)
{
	(void)state;
	if (rig_store)
		rig_close();
	loop_free(rig_loop);
	nftw(rig_dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* ---- one operation at a time ---- */

static bool rig_is_done;

static inline void rig_op_done(struct store_op *op)
{
	(void)op;
	rig_is_done = true;
}

static inline void rig_query_done(struct store_query *q)
{
	(void)q;
	rig_is_done = true;
}

#define DO(submit, x)                                                                                                  \
	((x)->op.done = rig_op_done, rig_is_done = false, assert_int_equal(submit(rig_store, (x)), 0),                 \
	    loop_run_until(rig_loop, &rig_is_done), (x)->op.err)
#define ASK(submit, x)                                                                                                 \
	((x)->q.done = rig_query_done, rig_is_done = false, assert_int_equal(submit(rig_store, (x)), 0),               \
	    loop_run_until(rig_loop, &rig_is_done), (x)->q.err)
#define DO_OK(submit, x)                                                                                               \
	do {                                                                                                           \
		if (DO(submit, x))                                                                                     \
			fail_msg("%s: %s", #submit, (x)->op.why.text);                                                 \
	} while (0)
#define ASK_OK(submit, x)                                                                                              \
	do {                                                                                                           \
		if (ASK(submit, x))                                                                                    \
			fail_msg("%s: %s", #submit, (x)->q.why.text);                                                  \
	} while (0)

/* ---- deliveries ---- */

/* Registers the accelerator npu with one runner, ci. */
static inline void rig_register_npu(enum level level)
{
	static char *no_names[] = {NULL};
	struct runner runner = {.name = (char *)"ci", .kind = RUNNER_GITHUB, .repository = (char *)"Ascend/pytorch"};
	struct accelerator a = {.name = (char *)"npu",
	    .title = (char *)"NPU",
	    .level = level,
	    .oncall = no_names,
	    .runners = &runner,
	    .n_runners = 1,
	    .must_pass = no_names,
	    .skip = no_names};
	struct mirror_registry m = {.list = &a, .n = 1, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
}

static inline bool rig_put(const char *guid, const char *body)
{
	struct put_delivery p = {.guid = guid,
	    .event = "pull_request",
	    .action = "opened",
	    .repository = UPSTREAM,
	    .body = body,
	    .body_bytes = strlen(body),
	    .now_ms = T0};

	DO_OK(store_put_delivery, &p);
	return p.delivery_id != 0;
}

/* Whether a delivery is stored: GitHub's failed attempt to deliver it is not recorded then. */
static inline bool rig_is_stored(const char *guid)
{
	struct failed_delivery failed = {.id = 1, .failed_ms = T0, .guid = guid};
	struct note_deliveries note = {.failed = &failed, .n_failed = 1, .now_ms = T0};
	struct note_deliveries forget = {.arrived = &guid, .n_arrived = 1, .now_ms = T0};
	struct list_redeliveries l = {.now_ms = T0, .limit = 1};
	bool is_stored;

	DO_OK(store_note_deliveries, &note);
	ASK_OK(store_list_redeliveries, &l);
	is_stored = l.n == 0;
	list_redeliveries_release(&l);
	DO_OK(store_note_deliveries, &forget);
	return is_stored;
}

/* The id of the newest delivery. */
static inline int64_t rig_newest_delivery(void)
{
	struct list_deliveries l = {.limit = 1};
	int64_t id;

	ASK_OK(store_list_deliveries, &l);
	assert_int_equal(l.n, 1);
	id = l.list[0].id;
	list_deliveries_release(&l);
	return id;
}

/* ---- plans ---- */

#define GITHUB_WANT(name, repo)                                                                                        \
	{                                                                                                              \
		.accelerator = (char *)(name), .runner = (char *)"ci", .kind = RUNNER_GITHUB,                          \
		.target = (char *)(repo), .start_ms = 2 * HOUR, .finish_ms = 6 * HOUR                                  \
	}
#define WEBHOOK_WANT(name)                                                                                             \
	{                                                                                                              \
		.accelerator = (char *)(name), .runner = (char *)"lab", .kind = RUNNER_WEBHOOK,                        \
		.target = (char *)"https://ci.example.org/hook", .acknowledge_ms = 10 * MINUTE, .start_ms = 2 * HOUR,  \
		.finish_ms = 6 * HOUR                                                                                  \
	}

struct rig_plan {
	enum plan_kind kind;
	int64_t number; /* 0: 1 */
	const char *head;
	const char *before; /* synchronize: the head that it replaced, or NULL */
	int64_t event_ms;   /* also updated_at */
	bool starts_round;
	const char *action;      /* GitHub's; NULL: "opened" */
	const char *sent_action; /* NULL: the same */
	struct plan_want *wants;
	size_t n_wants;
	char **drops;
	const char *association, *author, *base_ref; /* NULL: MEMBER, alice, main */
	bool is_draft;
	char **labels;  /* NULL: none */
	int64_t now_ms; /* 0: event_ms */
	struct outbox_offer offer;
};

static int rig_n_guids;

/* Applies the plan with a new delivery, as if planned for the first time. */
static inline struct apply_plan rig_apply(const struct rig_plan *r)
{
	static char *no_labels[] = {NULL};
	char guid[64];
	struct plan p = {
	    .kind = r->kind,
	    .change_kind = CHANGE_PULL_REQUEST,
	    .repository = (char *)UPSTREAM,
	    .pull = {.number = r->number ? r->number : 1,
		.head_sha = (char *)r->head,
		.base_sha = (char *)HEAD_C,
		.base_ref = (char *)(r->base_ref ? r->base_ref : "main"),
		.title = (char *)"A change",
		.author = (char *)(r->author ? r->author : "alice"),
		.author_association = (char *)(r->association ? r->association : "MEMBER"),
		.labels = r->labels ? r->labels : no_labels,
		.is_draft = r->is_draft,
		.is_open = r->kind != PLAN_CLOSE,
		.updated_ms = r->event_ms},
	    .head_sha = (char *)r->head,
	    .before = (char *)r->before,
	    .event_ms = r->event_ms,
	    .starts_round = r->starts_round,
	    .event_type = "pull_request",
	    .original_action = (char *)(r->action ? r->action : "opened"),
	    .wants = r->wants,
	    .n_wants = r->n_wants,
	    .drops = r->drops,
	};
	struct apply_plan op = {.plan = &p, .now_ms = r->now_ms ? r->now_ms : r->event_ms, .offer = r->offer};

	p.sent_action = r->sent_action ? r->sent_action : p.original_action;
	snprintf(guid, sizeof(guid), "guid-%d", ++rig_n_guids);
	assert_true(rig_put(guid, "{}"));
	op.guid = guid;
	op.delivery_id = rig_newest_delivery();
	DO_OK(store_apply_plan, &op);
	op.guid = NULL;
	op.plan = NULL;
	return op;
}

/* The usual one: `action` on PR 1 at second `at` with these wants. */
static inline struct apply_plan rig_start(
    const char *action, const char *head, int64_t at, struct plan_want *wants, size_t n_wants)
{
	return rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .head = head,
	    .event_ms = T0 + at * 1000,
	    .starts_round = strcmp(action, "reopened") == 0 || strcmp(action, "edited") == 0,
	    .action = action,
	    .sent_action = strcmp(action, "edited") == 0 ? "synchronize" : NULL,
	    .wants = wants,
	    .n_wants = n_wants});
}

static inline struct apply_plan rig_close_pull(int64_t number, const char *head, int64_t at)
{
	return rig_apply(&(struct rig_plan){
	    .kind = PLAN_CLOSE, .number = number, .head = head, .event_ms = T0 + at * 1000, .action = "closed"});
}

/* ---- outcomes ---- */

static inline struct change_view *rig_view_of(int64_t number, const char *head)
{
	struct get_change g = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .number = number, .head_sha = head};

	ASK_OK(store_get_change, &g);
	return g.view;
}

/* "accelerator/runner r1 queued*, …": every dispatch of a head, newest first; * current. */
static inline char *rig_dispatches(const char *head)
{
	struct change_view *v = rig_view_of(0, head);
	struct buf text = BUF_INIT(4096);

	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t k = 0; k < v->accelerators[i].n_dispatches; k++) {
			struct dispatch_view *x = &v->accelerators[i].dispatches[k];

			buf_appendf(&text, "%s%s %s%s", text.len ? ", " : "", v->accelerators[i].name,
			    dispatch_state_name(x->state), x->is_current ? "*" : "");
		}
	change_view_free(v);
	return buf_detach(&text);
}

#define ASSERT_DISPATCHES(head, expected)                                                                              \
	do {                                                                                                           \
		char *got_ = rig_dispatches(head);                                                                     \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

/* "suite/test STATUS [late], …" of a head. */
static inline char *rig_cells(const char *head)
{
	struct change_view *v = rig_view_of(0, head);
	struct buf text = BUF_INIT(65536);

	for (size_t i = 0; i < v->n_verdicts; i++) {
		struct verdict_view *c = &v->verdicts[i];

		buf_appendf(&text, "%s%s %s/%s %s%s", text.len ? ", " : "", v->accelerators[c->accelerator].name,
		    c->suite, c->test, test_status_name(c->status), c->is_late ? " late" : "");
	}
	change_view_free(v);
	return buf_detach(&text);
}

#define ASSERT_CELLS(head, expected)                                                                                   \
	do {                                                                                                           \
		char *got_ = rig_cells(head);                                                                          \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

/* The current dispatch id of an accelerator. free(). */
static inline char *rig_dispatch_id(const char *head, const char *accelerator)
{
	struct change_view *v = rig_view_of(0, head);
	char *id = NULL;

	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t k = 0; k < v->accelerators[i].n_dispatches; k++)
			if (strcmp(v->accelerators[i].name, accelerator) == 0 &&
			    v->accelerators[i].dispatches[k].is_current && !id)
				id = xstrdup(v->accelerators[i].dispatches[k].id);
	change_view_free(v);
	assert_non_null(id);
	return id;
}

static const unsigned REQUESTS = 1u << OUTBOX_GITHUB_DISPATCH | 1u << OUTBOX_GITHUB_CLOSED |
				 1u << OUTBOX_WEBHOOK_DISPATCH | 1u << OUTBOX_WEBHOOK_CANCEL;
static const unsigned COMMENTS = 1u << OUTBOX_COMMENT;

static inline struct claim_outbox rig_claim(unsigned kinds, int64_t now_ms)
{
	struct claim_outbox c = {.kinds = kinds, .limit = 100, .now_ms = now_ms};

	DO_OK(store_claim_outbox, &c);
	return c;
}

static inline void rig_done(const struct outbox_row *row, enum outbox_result result, int64_t next_ms)
{
	struct outbox_done o = {.id = row->id,
	    .epoch = row->epoch,
	    .result = result,
	    .generation = row->generation,
	    .next_ms = next_ms,
	    .now_ms = T0,
	    .error = result == OUTBOX_DEAD ? "404 Not Found" : NULL};

	DO_OK(store_outbox_done, &o);
}

/* Sends all due rows at now_ms: "kind target[accelerators] action; …". free(). */
static inline char *rig_send(int64_t now_ms)
{
	struct buf text = BUF_INIT(65536);

	for (;;) {
		struct claim_outbox c = rig_claim(REQUESTS, now_ms);
		size_t n = c.n;

		for (size_t i = 0; i < n; i++) {
			struct outbox_row *o = &c.rows[i];

			buf_appendf(&text, "%s%s %s[", text.len ? "; " : "", outbox_kind_name(o->kind), o->target);
			for (char **a = o->accelerators; *a; a++)
				buf_appendf(&text, "%s%s", a == o->accelerators ? "" : ",", *a);
			buf_appendf(&text, "] %s", o->sent_action);
			rig_done(o, OUTBOX_OK, 0);
		}
		claim_outbox_release(&c);
		if (!n)
			return buf_detach(&text);
	}
}

#define ASSERT_SENT(now_ms, expected)                                                                                  \
	do {                                                                                                           \
		char *got_ = rig_send(now_ms);                                                                         \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)
