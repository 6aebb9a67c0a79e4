/* A change with one of each kind of thing, and those of its fields that other people write. */
#pragma once

#include "view_builder.h"

enum field {
	FIELD_TITLE,
	FIELD_DOCS_URL,
	FIELD_HELP_URL,
	FIELD_ONCALL,
	FIELD_HELD_REASON,
	FIELD_LAST_ERROR,
	FIELD_HELD_TITLE,
	FIELD_SUITE,
	FIELD_TEST,
	FIELD_PASSED_TEST,
	FIELD_MESSAGE,
	FIELD_JOB_URL,
	FIELD_CONCLUSION,
	FIELD_RUNNING_WORKFLOW,
	FIELD_RUNNING_NAME,
	FIELD_BASE_REF,
	FIELD_HEAD_SHA,
	FIELD_MERGE_BASE,
	FIELD_REPOSITORY,
	FIELD_NAME,
	FIELD_DTYPE,
	FIELD_REASON,
	FIELD_FILE,
	FIELD_KNOWN_URL,
	FIELD_KNOWN_MESSAGE,
	FIELD_BASE_REASON,
	FIELD_FLAKY_TEST,
	FIELD_UNHEALTHY_TITLE,
	FIELD_UNHEALTHY_MESSAGE,
	FIELD_REQUIRED_SUITE,
	FIELD_MUST_PASS,
	FIELD_SKIP,
	FIELD_DELTA_BASE,
	FIELD_FIXED,
	FIELD_DISAPPEARED,
	FIELD_NEWLY_SKIPPED,
	FIELD_LABEL,
	N_FIELDS
};

/* Three reporting accelerators (one of them unhealthy), a silent and a held one: four columns and
 * nine rows, and every part that a comment can have. */
static inline size_t view_add_unhealthy(struct change_view *v)
{
	size_t tpu = view_add_accelerator(v, "e-tpu", "TPU", LEVEL_2, DISPATCH_DONE);

	v->accelerators[tpu].is_unhealthy = true;
	view_add_verdict(v, tpu, "unit", "sick", TEST_FAIL, 15)->message = xstrdup("lost");
	return tpu;
}

static inline void hostile_view_add_evidence(struct change_view *v, size_t npu, size_t tpu)
{
	struct accelerator_view *a = &v->accelerators[npu];
	struct verdict_view *w = &v->verdicts[0];

	w->attribution = ATTRIBUTION_NEW;
	w->dtype = xstrdup("bf16");
	w->reason = xstrdup("green on the merge base aaaaaaa");
	w->file = xstrdup("test/test_llama.py");
	w->line = 12;
	w->evidence_job = 9;
	w = view_add_verdict(v, npu, "unit", "known", TEST_FAIL, 12);
	w->attribution = ATTRIBUTION_KNOWN;
	w->evidence_url = xstrdup("https://vendor.example/issues/1");
	w->message = xstrdup("boom");
	w = view_add_verdict(v, npu, "unit", "old", TEST_ERROR, 12);
	w->attribution = ATTRIBUTION_BASE;
	w->reason = xstrdup("red on aaaaaaa, 3 commits before the merge base");
	w = view_add_verdict(v, npu, "unit", "shaky", TEST_FAIL, 12);
	w->attribution = ATTRIBUTION_FLAKY;
	strv_add(&a->required_suites, "benchmark");
	strv_add(&a->must_pass, "model/T5");
	strv_add(&v->accelerators[tpu].skip, "model/Y");
	a->delta.base_sha = xstrdup(VIEW_BASE_SHA);
	a->delta.n_fixed = a->delta.n_disappeared = a->delta.n_newly_skipped = 1;
	strv_add(&a->delta.fixed, "unit/a");
	strv_add(&a->delta.disappeared, "unit/b");
	strv_add(&a->delta.newly_skipped, "unit/c");
	strv_add(&v->labels, "ciflow/crcr/a-npu");
}

static inline struct change_view *hostile_view_new(void)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "a-npu", "Ascend NPU", LEVEL_2, DISPATCH_DONE);
	size_t xpu = view_add_accelerator(v, "b-xpu", "Intel XPU", LEVEL_2, DISPATCH_RUNNING);
	size_t mlu = view_add_accelerator(v, "c-mlu", "MLU", LEVEL_2, DISPATCH_EXPIRED);
	size_t hpu = view_add_accelerator(v, "d-hpu", "HPU", LEVEL_2, DISPATCH_HELD);

	view_set_merge_base(v, 0);
	view_set_contact(v, npu, "https://vendor.example/docs", "https://vendor.example/help", "alice");
	view_set_contact(v, mlu, NULL, "https://vendor.example/help", "bob");
	v->accelerators[mlu].dispatches[0].last_error = xstrdup("did not start within 2h");
	v->accelerators[hpu].dispatches[0].held_reason = xstrdup("a first-time contributor");
	view_add_job(v, npu, 12, "test", "failure")->url = xstrdup("https://vendor.example/run");
	view_add_job(v, npu, 13, "lint", "timed_out");
	view_add_job(v, xpu, 14, "slow", NULL);
	view_add_verdict(v, npu, "model", "llama3", TEST_FAIL, 12)->message = xstrdup("boom");
	view_add_verdict(v, npu, "CI", "lint", TEST_MISS, 13);
	view_add_verdict(v, npu, "model", "Qwen", TEST_PASS, 12);
	view_add_verdict(v, xpu, "model", "Qwen", TEST_PASS, 14);
	view_add_verdict(v, npu, "model", "X", TEST_SKIP, 12);
	hostile_view_add_evidence(v, npu, view_add_unhealthy(v));
	return v;
}

/* Returns the place of that field's text; replace it by a text that can be freed. */
static inline char **hostile_view_field(struct change_view *v, enum field f)
{
	switch (f) {
	case FIELD_TITLE:
		return &v->accelerators[0].title;
	case FIELD_DOCS_URL:
		return &v->accelerators[0].docs_url;
	case FIELD_HELP_URL:
		return &v->accelerators[0].help_url;
	case FIELD_ONCALL:
		return &v->accelerators[0].oncall[0];
	case FIELD_HELD_REASON:
		return &v->accelerators[3].dispatches[0].held_reason;
	case FIELD_LAST_ERROR:
		return &v->accelerators[2].dispatches[0].last_error;
	case FIELD_HELD_TITLE:
		return &v->accelerators[3].title;
	case FIELD_SUITE:
		return &v->verdicts[0].suite;
	case FIELD_TEST:
		return &v->verdicts[0].test;
	case FIELD_PASSED_TEST:
		return &v->verdicts[4].test;
	case FIELD_MESSAGE:
		return &v->verdicts[0].message;
	case FIELD_JOB_URL:
		return &v->accelerators[0].jobs[0].url;
	case FIELD_CONCLUSION:
		return &v->accelerators[0].jobs[1].conclusion;
	case FIELD_RUNNING_WORKFLOW:
		return &v->accelerators[1].jobs[0].workflow;
	case FIELD_RUNNING_NAME:
		return &v->accelerators[1].jobs[0].name;
	case FIELD_BASE_REF:
		return &v->base_ref;
	case FIELD_HEAD_SHA:
		return &v->head_sha;
	case FIELD_MERGE_BASE:
		return &v->merge_base_sha;
	case FIELD_REPOSITORY:
		return &v->repository;
	case FIELD_NAME:
		return &v->accelerators[0].name;
	case FIELD_DTYPE:
		return &v->verdicts[0].dtype;
	case FIELD_REASON:
		return &v->verdicts[0].reason;
	case FIELD_FILE:
		return &v->verdicts[0].file;
	case FIELD_KNOWN_URL:
		return &v->verdicts[6].evidence_url;
	case FIELD_KNOWN_MESSAGE:
		return &v->verdicts[6].message;
	case FIELD_BASE_REASON:
		return &v->verdicts[7].reason;
	case FIELD_FLAKY_TEST:
		return &v->verdicts[8].test;
	case FIELD_UNHEALTHY_TITLE:
		return &v->accelerators[4].title;
	case FIELD_UNHEALTHY_MESSAGE:
		return &v->verdicts[5].message;
	case FIELD_REQUIRED_SUITE:
		return &v->accelerators[0].required_suites[0];
	case FIELD_MUST_PASS:
		return &v->accelerators[0].must_pass[0];
	case FIELD_SKIP:
		return &v->accelerators[4].skip[0];
	case FIELD_DELTA_BASE:
		return &v->accelerators[0].delta.base_sha;
	case FIELD_FIXED:
		return &v->accelerators[0].delta.fixed[0];
	case FIELD_DISAPPEARED:
		return &v->accelerators[0].delta.disappeared[0];
	case FIELD_NEWLY_SKIPPED:
		return &v->accelerators[0].delta.newly_skipped[0];
	case FIELD_LABEL:
		return &v->labels[0];
	case N_FIELDS:
		break;
	}
	return NULL;
}
