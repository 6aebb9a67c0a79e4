/* CTRF JSON (ctrf.io, specification 1.0). Its statuses are coarser than ours: `rawStatus` has the
 * word, `extra` what else CTRF has no place for, and our reader takes both back. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/version.h"
#include "report/json_field.h"
#include "report/report_out.h"

const char *ctrf_status(enum test_status status)
{
	static const char *const words[N_TEST_STATUSES] = {
	    [TEST_FAIL] = "failed",
	    [TEST_ERROR] = "failed",
	    [TEST_MISS] = "other",
	    [TEST_PASS] = "passed",
	    [TEST_DONE] = "passed",
	    [TEST_SKIP] = "skipped",
	};

	return words[status];
}

static json_t *summary_json(const struct report_out *o)
{
	static const char *const words[] = {"passed", "failed", "skipped", "pending", "other"};
	const struct job_view *j = &o->job->job;
	json_t *v = json_object();

	json_set_int(v, "tests", (int64_t)o->n_tests);
	for (size_t w = 0; w < ARRAY_LEN(words); w++) {
		int64_t n = 0;

		for (size_t i = 0; i < o->n_tests; i++)
			n += strcmp(ctrf_status(o->tests[i].status), words[w]) == 0;
		json_set_int(v, words[w], n);
	}
	json_set_int(v, "start", j->started_ms);
	json_set_int(v, "stop", j->completed_ms);
	return v;
}

static void set_given(json_t *obj, const char *key, const char *text)
{
	if (text && *text)
		json_set_foreign_text(obj, key, text);
}

/* Its osPlatform is for readers that look no further; ours is all in extra. */
static json_t *environment_json(const struct job_detail *d)
{
	json_t *v = json_object(), *extra = NULL;
	const char *text = d->environment;

	set_given(v, "reportName", d->accelerator);
	set_given(v, "buildName", d->job.workflow);
	set_given(v, "buildId", d->job.run_id);
	set_given(v, "buildUrl", d->job.url);
	set_given(v, "repositoryName", d->repository);
	set_given(v, "commit", d->head_sha);
	if (text && !json_parse(text, strlen(text), &extra, NULL)) {
		set_given(v, "osPlatform", json_get_str(extra, "os"));
		json_object_set_new(v, "extra", extra);
	}
	return v;
}

static json_t *extra_json(const struct report_out *o, const struct test_result *t)
{
	json_t *v = json_object();

	set_given(v, "dtype", t->dtype);
	set_given(v, "log_url", o->detail < REPORT_BARE ? t->log_url : NULL);
	if (t->has_number) {
		json_t *number = json_object();

		json_object_set_new(number, "value", json_real(t->number));
		set_given(number, "unit", t->unit);
		json_object_set_new(v, "number", number);
	}
	return v;
}

static json_t *test_json(const struct report_out *o, const struct test_result *t)
{
	json_t *v = json_object(), *suite = json_object(), *extra = extra_json(o, t);

	json_set_foreign_text(v, "name", t->name);
	/* through an object: what is no UTF-8 must not come out as null */
	json_set_foreign_text(suite, "s", t->suite);
	json_object_set_new(v, "suite", json_pack("[O]", json_object_get(suite, "s")));
	json_decref(suite);
	json_set_str(v, "status", ctrf_status(t->status));
	json_set_str(v, "rawStatus", test_status_name(t->status));
	json_set_int(v, "duration", t->duration_ms > 0 ? t->duration_ms : 0);
	set_given(v, "message", report_out_message(o, t));
	set_given(v, "trace", report_out_trace(o, t));
	set_given(v, "filePath", t->file);
	if (t->file && t->line)
		json_set_int(v, "line", t->line);
	if (json_object_size(extra))
		json_object_set(v, "extra", extra);
	json_decref(extra);
	return v;
}

static void put_json(struct buf *out, const json_t *v, int digits)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(digits));

	buf_append_str(out, text);
	free(text);
}

/* The head as one object, then the tests one by one: a tree of 20,000 would take many times their
 * size. */
void ctrf_out(const struct report_out *o, struct buf *out)
{
	json_t *tool = json_pack("{s:s, s:s}", "name", "outpost", "version", OUTPOST_VERSION);
	json_t *summary = summary_json(o), *environment = environment_json(o->job);
	char text[32];

	buf_append_str(out, "{\"reportFormat\":\"CTRF\",\"specVersion\":\"1.0.0\","
			    "\"generatedBy\":\"outpost\",\"results\":{\"tool\":");
	put_json(out, tool, 15);
	buf_append_str(out, ",\"summary\":");
	put_json(out, summary, 15);
	buf_append_str(out, ",\"environment\":");
	put_json(out, environment, 15);
	if (o->job->job.n_cut)
		buf_appendf(out, ",\"extra\":{\"cut\":%lld}", (long long)o->job->job.n_cut);
	buf_append_str(out, ",\"tests\":[");
	for (size_t i = 0; i < o->n_tests && !out->is_overflow; i++) {
		json_t *v = test_json(o, &o->tests[i]);
		bool is_short = strlen(report_number_text(o->tests[i].number, text)) < 17;

		buf_append_str(out, i ? ",\n" : "\n");
		put_json(out, v, is_short ? 15 : 17);
		json_decref(v);
	}
	buf_append_str(out, "\n]}}\n");
	json_decref(tool);
	json_decref(summary);
	json_decref(environment);
}
