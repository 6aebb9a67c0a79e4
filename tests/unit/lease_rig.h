/* Pull dispatches on top of store_rig.h: machines that claim, renew, return and report. */
#pragma once

#include "model/runner_protocol.h"
#include "store/claims.h"
#include "store/job_reports.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "store_rig.h"
#include "views/job.h"

#define SECOND   INT64_C(1000)
#define LEASE_MS (60 * SECOND)

#define PULL_WANT(name, runner_name)                                                                                   \
	{                                                                                                              \
		.accelerator = (char *)(name), .runner = (char *)(runner_name), .kind = RUNNER_PULL,                   \
		.target = (char *)"", .acknowledge_ms = 10 * MINUTE, .start_ms = 2 * HOUR, .finish_ms = 6 * HOUR       \
	}

/* PR `number` at `head`, for npu's farm, `at` milliseconds after T0. */
static inline void queue_pull(int64_t number, const char *head, int64_t at)
{
	struct plan_want wants[] = {PULL_WANT("npu", "farm")};

	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .number = number, .head = head, .event_ms = T0 + at, .wants = wants, .n_wants = 1});
}

static inline struct claim_dispatch claim_with(
    const struct claim_dispatch *as, const char *machine, const char *claim_id, int64_t at)
{
	static const struct claim_choice farm = {"farm", 2};
	struct claim_dispatch c = *as;

	c.accelerator = c.accelerator ? c.accelerator : "npu";
	if (!c.choices) {
		c.choices = &farm;
		c.n_choices = 1;
	}
	c.machine = machine;
	c.claim_id = claim_id;
	c.lease_ms = LEASE_MS;
	c.now_ms = T0 + at;
	DO_OK(store_claim_dispatch, &c);
	return c;
}

static inline struct claim_dispatch claim(const char *machine, const char *claim_id, int64_t at)
{
	return claim_with(&(struct claim_dispatch){0}, machine, claim_id, at);
}

/* A claim that must find work. */
static inline struct lease_offer take(const char *machine, const char *claim_id, int64_t at)
{
	struct claim_dispatch c = claim(machine, claim_id, at);

	assert_true(c.is_found);
	return c.offer;
}

static inline struct renew_lease renew(const struct lease_offer *o, const char *machine, int64_t at)
{
	struct renew_lease r = {
	    .lease_id = o->lease_id,
	    .accelerator = "npu",
	    .machine = machine,
	    .lease_ms = LEASE_MS,
	    .now_ms = T0 + at,
	};

	DO_OK(store_renew_lease, &r);
	return r;
}

#define ASSERT_RENEWED(offer, machine, at, expected_word, part_of_reason)                                              \
	do {                                                                                                           \
		struct renew_lease got_ = renew(offer, machine, at);                                                   \
		assert_int_equal(got_.word, expected_word);                                                            \
		if (!strstr(got_.reason, part_of_reason))                                                              \
			fail_msg("reason: %s", got_.reason);                                                           \
	} while (0)

static inline int give_back(const struct lease_offer *o, const char *machine, const char *reason, int64_t at)
{
	struct return_lease r = {
	    .lease_id = o->lease_id,
	    .accelerator = "npu",
	    .machine = machine,
	    .reason = reason,
	    .now_ms = T0 + at,
	};

	return DO(store_return_lease, &r);
}

static inline struct expire_leases expire(int64_t at)
{
	struct expire_leases e = {.now_ms = T0 + at};

	DO_OK(store_expire_leases, &e);
	return e;
}

/* The machine's own report of its job's end. */
static inline enum report_outcome finish_with(const struct lease_offer *o, const char *conclusion,
    struct test_result *tests, size_t n_tests, const char *const *silent, int64_t at)
{
	struct job_report j = {
	    .status = JOB_COMPLETED,
	    .conclusion = (char *)conclusion,
	    .workflow = o->runner,
	    .name = (char *)"tests",
	    .run_id = o->run_id,
	    .run_attempt = o->attempt,
	    .tests = tests,
	    .n_tests = n_tests,
	};
	struct report_job op = {
	    .dispatch_id = o->dispatch_id,
	    .accelerator = "npu",
	    .silent = silent,
	    .report = &j,
	    .now_ms = T0 + at,
	};

	sha256(conclusion, strlen(conclusion), j.digest);
	DO_OK(store_report_job, &op);
	return op.outcome;
}

static inline enum report_outcome finish(const struct lease_offer *o, const char *conclusion, int64_t at)
{
	return finish_with(o, conclusion, NULL, 0, NULL, at);
}

static inline struct job_detail *job_of(int64_t id)
{
	struct get_job g = {.id = id};

	ASK_OK(store_get_job, &g);
	return g.job;
}

/* "in_progress", or "conclusion: message". */
static inline void assert_job(int64_t id, const char *expected)
{
	struct job_detail *j = job_of(id);
	struct buf text = BUF_INIT(4096);
	char *got;

	buf_appendf(&text, "%s", j->job.status == JOB_COMPLETED ? j->job.conclusion : job_status_name(j->job.status));
	if (j->message)
		buf_appendf(&text, ": %s", j->message);
	got = buf_detach(&text);
	assert_string_equal(got, expected);
	free(got);
	job_detail_free(j);
}

/* The message of the only cell of a head. */
static inline void assert_cell_says(const char *head, const char *expected)
{
	struct change_view *v = rig_view_of(0, head);

	assert_int_equal(v->n_verdicts, 1);
	assert_non_null(v->verdicts[0].message);
	assert_string_equal(v->verdicts[0].message, expected);
	change_view_free(v);
}

/* "machine state, …", newest first. */
static inline char *lease_states(void)
{
	struct list_leases l = {0};
	struct buf text = BUF_INIT(65536);

	ASK_OK(store_list_leases, &l);
	for (size_t i = 0; i < l.n; i++)
		buf_appendf(&text, "%s%s %s", text.len ? ", " : "", l.list[i].machine, l.list[i].state);
	list_leases_release(&l);
	return buf_detach(&text);
}

#define ASSERT_LEASES(expected)                                                                                        \
	do {                                                                                                           \
		char *got_ = lease_states();                                                                           \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

static inline int64_t n_queued(void)
{
	struct list_leases l = {.accelerator = "npu", .only_active = true};
	int64_t n;

	ASK_OK(store_list_leases, &l);
	n = l.n_queued;
	list_leases_release(&l);
	return n;
}
