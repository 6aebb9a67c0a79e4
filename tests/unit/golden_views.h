/* Typical changes for docs/comments: each function builds one view. change_view_free() the result. */
#pragma once

#include "view_builder.h"

enum { NPU, HPU, XPU, MLU, TPU, N_GOLDEN_ACCELERATORS };
enum { BASE_JOB = 4000, CHANGE_JOB = 5000 };

static inline void golden_set_contact(struct change_view *v, size_t i)
{
	struct accelerator_view *a = &v->accelerators[i];
	char *docs = xasprintf("https://%s.example/docs", a->name);
	char *help = xasprintf("https://%s.example/help", a->name);

	view_set_contact(v, i, docs, help, i == NPU ? "alice" : "bob");
	free(docs);
	free(help);
}

/* n accelerators that finished, of the same three models and two suites of units, all green. */
static inline struct change_view *golden_green(size_t n)
{
	static const char *const names[] = {"ascend-npu", "gaudi-hpu", "intel-xpu", "mlu", "tpu"};
	static const char *const titles[] = {"Ascend NPU", "Gaudi HPU", "Intel XPU", "Cambricon MLU", "TPU"};
	static const char *const tests[][2] = {{"model", "llama3"}, {"model", "qwen2"}, {"model", "bert"},
	    {"unit", "test_ops"}, {"unit", "test_autograd"}};
	struct change_view *v = view_new();

	free(v->head_sha);
	v->head_sha = xstrdup("c0cc4df2b84d0f9a6a4b4f5d1be19c1f0a7e3d55");
	view_set_merge_base(v, INT64_C(5) * 3600 * 1000);
	free(v->merge_base_sha);
	v->merge_base_sha = xstrdup("5eeaadb61c0dbb5d3fd8f8f2f9a1c4e07b2d6a90");
	for (size_t i = 0; i < n; i++) {
		view_add_accelerator(v, names[i], titles[i], LEVEL_2, DISPATCH_DONE);
		golden_set_contact(v, i);
		view_add_job(v, i, CHANGE_JOB + (int64_t)i, "test", "success");
	}
	for (size_t t = 0; t < ARRAY_LEN(tests); t++)
		for (size_t i = 0; i < n; i++)
			view_add_verdict(v, i, tests[t][0], tests[t][1], TEST_PASS, CHANGE_JOB + (int64_t)i);
	return v;
}

static inline struct verdict_view *golden_cell(struct change_view *v, size_t accelerator, const char *test)
{
	for (size_t i = 0; i < v->n_verdicts; i++)
		if (v->verdicts[i].accelerator == accelerator && str_eq(v->verdicts[i].test, test))
			return &v->verdicts[i];
	return NULL;
}

/* Why a cell is red, in the words of model/attribution.c. evidence: 0 for none. */
static inline struct verdict_view *golden_fail(
    struct change_view *v, size_t accelerator, const char *test, enum attribution why, const char *message)
{
	static const char *const reasons[] = {[ATTRIBUTION_KNOWN] = "an issue is registered for it",
	    [ATTRIBUTION_BASE] = "red on the merge base 5eeaadb, too",
	    [ATTRIBUTION_FLAKY] = "passed in another run on this commit",
	    [ATTRIBUTION_NEW] = "green on the merge base 5eeaadb",
	    [ATTRIBUTION_UNCLASSIFIED] = "not tested on the merge base"};
	struct verdict_view *w = golden_cell(v, accelerator, test);

	w->status = TEST_FAIL;
	w->attribution = why;
	w->message = xstrdup(message);
	w->reason = xstrdup(reasons[why]);
	if (why != ATTRIBUTION_KNOWN && why != ATTRIBUTION_UNCLASSIFIED)
		w->evidence_job = BASE_JOB + (int64_t)accelerator;
	return w;
}

static inline void golden_reason(struct verdict_view *w, const char *reason, int64_t evidence_job)
{
	free(w->reason);
	w->reason = xstrdup(reason);
	w->evidence_job = evidence_job;
}

static inline void golden_state(struct change_view *v, size_t accelerator, enum dispatch_state state, const char *why)
{
	struct dispatch_view *d = &v->accelerators[accelerator].dispatches[0];

	d->state = state;
	if (state == DISPATCH_HELD)
		d->held_reason = xstrdup_or_null(why);
	else
		d->last_error = xstrdup_or_null(why);
}

/* Changes the view as if that accelerator had not reported yet. */
static inline void golden_forget(struct change_view *v, size_t accelerator)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_verdicts; i++) {
		struct verdict_view *w = &v->verdicts[i];

		if (w->accelerator != accelerator) {
			v->verdicts[n++] = *w;
			continue;
		}
		free(w->suite);
		free(w->test);
	}
	v->n_verdicts = n;
	v->n_verdicts_total = (int64_t)n;
	for (size_t i = 0; i < v->accelerators[accelerator].n_jobs; i++)
		record_release(&job_view_record, &v->accelerators[accelerator].jobs[i]);
	v->accelerators[accelerator].n_jobs = 0;
}

static inline struct change_view *golden_all_green(void) { return golden_green(3); }

static inline struct change_view *golden_new_failure(void)
{
	struct change_view *v = golden_green(3);
	struct verdict_view *w = golden_fail(
	    v, NPU, "llama3", ATTRIBUTION_NEW, "RuntimeError: \"addmm_out\" not implemented for 'PrivateUse1'");

	w->file = xstrdup("test/models/test_llama3.py");
	w->line = 118;
	w = golden_fail(v, NPU, "test_ops", ATTRIBUTION_NEW, "AssertionError: 3 of 1204 ops differ");
	v->accelerators[NPU].jobs[0].url = xstrdup("https://ascend-npu.example/runs/81");
	return v;
}

static inline struct change_view *golden_base_broken(void)
{
	struct change_view *v = golden_green(3);

	golden_fail(v, HPU, "qwen2", ATTRIBUTION_BASE, "Graph compile failed: unsupported aten::roll");
	golden_fail(v, HPU, "bert", ATTRIBUTION_BASE, "Graph compile failed: unsupported aten::roll");
	return v;
}

static inline struct change_view *golden_flaky(void)
{
	struct change_view *v = golden_green(3);

	golden_fail(v, XPU, "test_autograd", ATTRIBUTION_FLAKY,
	    "AssertionError: Tensor-likes are not close: 1 of 4096 elements");
	return v;
}

static inline struct change_view *golden_known_issue(void)
{
	struct change_view *v = golden_green(3);
	struct verdict_view *w =
	    golden_fail(v, HPU, "bert", ATTRIBUTION_KNOWN, "RuntimeError: synStatus=26 Generic failure");

	w->evidence_url = xstrdup("https://github.com/pytorch/pytorch/issues/148211");
	return v;
}

static inline struct change_view *golden_mixed(void)
{
	struct change_view *v = golden_green(5);
	struct verdict_view *w;

	w = golden_fail(v, NPU, "llama3", ATTRIBUTION_NEW, "RuntimeError: no kernel for aten::rms_norm");
	w->dtype = NULL;
	w = golden_fail(v, HPU, "bert", ATTRIBUTION_KNOWN, "RuntimeError: synStatus=26 Generic failure");
	w->evidence_url = xstrdup("https://github.com/pytorch/pytorch/issues/148211");
	golden_fail(v, HPU, "qwen2", ATTRIBUTION_BASE, "Graph compile failed: unsupported aten::roll");
	golden_fail(v, XPU, "test_autograd", ATTRIBUTION_FLAKY,
	    "AssertionError: Tensor-likes are not close: 1 of 4096 elements");
	golden_fail(v, XPU, "llama3", ATTRIBUTION_UNCLASSIFIED, "IndexError: index 7 is out of bounds")->status =
	    TEST_ERROR;
	golden_forget(v, MLU);
	golden_state(v, MLU, DISPATCH_EXPIRED, "did not start within 2h");
	golden_forget(v, TPU);
	golden_state(v, TPU, DISPATCH_RUNNING, NULL);
	v->accelerators[NPU].delta = (struct base_delta){.base_sha = xstrdup(v->merge_base_sha),
	    .n_newly_failing = 1,
	    .n_disappeared = 1,
	    .fixed = v->accelerators[NPU].delta.fixed,
	    .disappeared = v->accelerators[NPU].delta.disappeared,
	    .newly_skipped = v->accelerators[NPU].delta.newly_skipped};
	strv_add(&v->accelerators[NPU].delta.disappeared, "model/t5");
	return v;
}

static inline struct change_view *golden_not_classified(void)
{
	struct change_view *v = golden_green(3);

	golden_fail(v, XPU, "llama3", ATTRIBUTION_UNCLASSIFIED, "IndexError: index 7 is out of bounds");
	return v;
}

static inline struct change_view *golden_being_looked_at(void)
{
	struct change_view *v = golden_not_classified();

	v->is_being_attributed = true;
	return v;
}

/* Three failures are rerun, on the head and on the merge base: each counts until its rerun has ended. */
static inline struct change_view *golden_rerunning(void)
{
	struct change_view *v = golden_green(3);
	struct verdict_view *w;

	w = golden_fail(v, NPU, "llama3", ATTRIBUTION_NEW, "RuntimeError: no kernel for aten::rms_norm");
	w->rerun = RERUN_PENDING;
	w = golden_fail(v, NPU, "qwen2", ATTRIBUTION_UNCLASSIFIED, "TimeoutError: no answer within 600 s");
	golden_reason(w, "not tested on the merge base; likely flaky: seen on 3 other changes", 3801);
	w->rerun = RERUN_PENDING;
	w = golden_fail(v, HPU, "bert", ATTRIBUTION_UNCLASSIFIED, "IndexError: index 7 is out of bounds");
	w->rerun = RERUN_PENDING;
	return v;
}

/* The machine looks bad, so the rerun waits for a good machine. The comment is final until then. */
static inline struct change_view *golden_waits_for_good_machine(void)
{
	struct change_view *v = golden_green(3);
	struct verdict_view *w;

	w = golden_fail(v, HPU, "bert", ATTRIBUTION_UNCLASSIFIED, "RuntimeError: device lost");
	golden_reason(w, "looks like infrastructure; not tested on the merge base; red again here", 0);
	w->rerun = RERUN_LATER;
	return v;
}

/* Reruns that could have helped but gave no result, each for another reason. */
static inline struct change_view *golden_reruns_without_result(void)
{
	struct change_view *v = golden_green(3);
	struct verdict_view *w;

	w = golden_fail(v, NPU, "llama3", ATTRIBUTION_NEW, "RuntimeError: no kernel for aten::rms_norm");
	w->rerun = RERUN_NO_ANSWER;
	w = golden_fail(v, NPU, "qwen2", ATTRIBUTION_UNCLASSIFIED, "TimeoutError: no answer within 600 s");
	w->rerun = RERUN_OVER_LIMIT;
	w = golden_fail(v, HPU, "bert", ATTRIBUTION_UNCLASSIFIED, "IndexError: index 7 is out of bounds");
	w->rerun = RERUN_VOID;
	w->rerun_job = 6003;
	return v;
}

/* Reruns have ended: one passed on this commit, one failed again, one fails on its base. */
static inline struct change_view *golden_settled_by_rerun(void)
{
	struct change_view *v = golden_green(3);

	golden_reason(golden_fail(v, NPU, "llama3", ATTRIBUTION_NEW, "RuntimeError: no kernel for aten::rms_norm"),
	    "green on the merge base 5eeaadb, and red twice here", 6002);
	golden_reason(golden_fail(v, NPU, "qwen2", ATTRIBUTION_FLAKY, "TimeoutError: no answer within 600 s"),
	    "passed in another run on this commit", 6001);
	return v;
}

static inline struct change_view *golden_confirmed_on_base(void)
{
	struct change_view *v = golden_green(3);

	golden_reason(golden_fail(v, HPU, "bert", ATTRIBUTION_BASE, "IndexError: index 7 is out of bounds"),
	    "red on the merge base 5eeaadb, too", 6004);
	return v;
}

/* A similar message excuses nothing until the test has run again. */
static inline struct change_view *golden_likely_flaky(void)
{
	struct change_view *v = golden_green(3);

	golden_reason(golden_fail(v, XPU, "qwen2", ATTRIBUTION_UNCLASSIFIED, "TimeoutError: no answer within 600 s"),
	    "not tested on the merge base; likely flaky: seen on 3 other changes", 3801);
	return v;
}

static inline struct change_view *golden_silent_vendor(void)
{
	struct change_view *v = golden_green(3);

	golden_forget(v, HPU);
	golden_state(v, HPU, DISPATCH_EXPIRED, "did not start within 2h");
	return v;
}

static inline struct change_view *golden_held(void)
{
	struct change_view *v = golden_green(3);

	for (size_t i = 0; i < 3; i++)
		golden_forget(v, i);
	golden_state(v, NPU, DISPATCH_HELD, "the author has not contributed before");
	golden_state(v, HPU, DISPATCH_HELD, "the author has not contributed before");
	golden_state(v, XPU, DISPATCH_HELD, "only merged changes run here");
	v->accelerators[XPU].dispatches[0].is_held_for_good = true;
	return v;
}

static inline struct change_view *golden_first_results(void)
{
	struct change_view *v = golden_green(5);

	for (size_t i = HPU; i <= TPU; i++)
		golden_forget(v, i);
	golden_state(v, HPU, DISPATCH_RUNNING, NULL);
	view_add_job(v, HPU, CHANGE_JOB + HPU, "test", NULL);
	golden_state(v, XPU, DISPATCH_SENT, NULL);
	golden_state(v, MLU, DISPATCH_QUEUED, NULL);
	golden_state(v, TPU, DISPATCH_QUEUED, NULL);
	free(v->accelerators[MLU].dispatches[0].runner_kind);
	v->accelerators[MLU].dispatches[0].runner_kind = xstrdup("pull");
	return v;
}

static inline struct change_view *golden_unhealthy(void)
{
	struct change_view *v = golden_green(3);

	golden_fail(v, HPU, "llama3", ATTRIBUTION_UNCLASSIFIED, "synInitialize failed: device lost");
	golden_fail(v, HPU, "qwen2", ATTRIBUTION_UNCLASSIFIED, "synInitialize failed: device lost");
	v->accelerators[HPU].is_unhealthy = true;
	return v;
}

static inline struct change_view *golden_required_missing(void)
{
	struct change_view *v = golden_green(3);

	for (size_t i = 0; i < 3; i++)
		strv_add(&v->accelerators[i].required_suites, "model");
	golden_forget(v, XPU);
	view_add_job(v, XPU, CHANGE_JOB + XPU, "test", "success");
	view_add_verdict(v, XPU, "unit", "test_ops", TEST_PASS, CHANGE_JOB + XPU);
	strv_add(&v->accelerators[NPU].must_pass, "model/llama3");
	golden_cell(v, NPU, "llama3")->status = TEST_SKIP;
	return v;
}

static inline struct change_view *golden_disappeared(void)
{
	struct change_view *v = golden_green(3);
	struct base_delta *d = &v->accelerators[NPU].delta;

	d->base_sha = xstrdup("8f14e45fceea167a5a36dedd4bea2543b1e2a3c4");
	d->distance = 3;
	d->n_disappeared = 2;
	d->n_newly_skipped = d->n_fixed = 1;
	strv_add(&d->disappeared, "model/t5");
	strv_add(&d->disappeared, "model/whisper");
	strv_add(&d->newly_skipped, "unit/test_sparse");
	strv_add(&d->fixed, "model/bert");
	return v;
}

static inline struct change_view *golden_sixty_accelerators(void)
{
	static const char *const tests[] = {"llama3", "qwen2", "bert", "t5"};
	struct change_view *v = golden_green(0);

	for (size_t i = 0; i < 60; i++) {
		char name[32], title[32];

		snprintf(name, sizeof(name), "device-%02zu", i + 1);
		snprintf(title, sizeof(title), "Device %02zu", i + 1);
		view_add_accelerator(v, name, title, LEVEL_2, DISPATCH_DONE);
		golden_set_contact(v, i);
	}
	for (size_t t = 0; t < ARRAY_LEN(tests); t++)
		for (size_t i = 0; i < 60; i++)
			view_add_verdict(v, i, "model", tests[t], TEST_PASS, CHANGE_JOB + (int64_t)i);
	golden_fail(v, 6, "qwen2", ATTRIBUTION_NEW, "RuntimeError: no kernel for aten::rms_norm");
	golden_fail(v, 41, "t5", ATTRIBUTION_BASE, "Killed by the watchdog after 1800 s");
	return v;
}

static inline struct change_view *golden_twenty_thousand_tests(void)
{
	struct change_view *v = golden_green(2);

	for (size_t t = 0; t < 20000; t++) {
		char name[64];

		snprintf(name, sizeof(name), "test_ops.py::test_case_%05zu", t);
		for (size_t i = 0; i < 2; i++)
			view_add_verdict(v, i, "unit", name, TEST_PASS, CHANGE_JOB + (int64_t)i);
	}
	golden_fail(
	    v, HPU, "test_ops.py::test_case_01234", ATTRIBUTION_NEW, "AssertionError: expected 0.7071, got 0.7068")
	    ->dtype = xstrdup("bf16");
	golden_cell(v, NPU, "test_ops.py::test_case_01234")->dtype = xstrdup("bf16");
	return v;
}

static inline struct change_view *golden_closed(void)
{
	struct change_view *v = golden_new_failure();

	v->state = CHANGE_CLOSED;
	golden_forget(v, HPU);
	golden_state(v, HPU, DISPATCH_CANCELLED, NULL);
	return v;
}

static inline struct change_view *golden_superseded(void)
{
	struct change_view *v = golden_new_failure();

	v->state = CHANGE_SUPERSEDED;
	return v;
}
