/* Outpost JSON, version 1, as docs/report.schema.json describes it. */

#include "documents/formats.h"

enum { WHERE_BYTES = 48 };

/* A member may be absent or null. */
static int check_texts(const json_t *obj, const char *where, const char *const *keys, struct error *e)
{
	for (size_t i = 0; keys[i]; i++) {
		const json_t *v = json_object_get(obj, keys[i]);

		if (v && !json_is_null(v) && !json_is_string(v))
			return error_set(e, ERR_INVALID, "%s.%s must be text", where, keys[i]);
	}
	return 0;
}

int environment_text(const json_t *environment, char **ret, struct error *e)
{
	static const char *const keys[] = {"accelerator", "device", "os", "driver", "torch", "torch_commit", NULL};
	static const char *const extension_keys[] = {"name", "version", NULL};
	const json_t *extension = json_object_get(environment, "extension");

	*ret = NULL;
	if (!json_is_object(environment))
		return error_set(e, ERR_INVALID, "environment must be an object");
	int rc = check_texts(environment, "environment", keys, e);
	if (rc)
		return rc;
	if (extension && !json_is_null(extension)) {
		if (!json_is_object(extension))
			return error_set(e, ERR_INVALID, "environment.extension must be an object");
		rc = check_texts(extension, "environment.extension", extension_keys, e);
		if (rc)
			return rc;
	}
	char *text = json_text(environment);
	if (strlen(text) > ENVIRONMENT_MAX_BYTES) {
		free(text);
		return error_set(e, ERR_INVALID, "environment is longer than %d KiB", ENVIRONMENT_MAX_BYTES >> 10);
	}
	*ret = text;
	return 0;
}

static int parse_tests(struct json_slice value, struct case_list *cases, struct error *e)
{
	struct json_slice key, slice;
	struct json_iter it;
	char where[WHERE_BYTES];
	size_t i = 0;
	int rc = 0;

	if (!value.p)
		return error_set(e, ERR_INVALID, "tests is missing");
	if (!json_iter_init(&it, value, '['))
		return error_set(e, ERR_INVALID, "tests must be an array");
	while (!rc && json_iter_next(&it, &key, &slice)) {
		struct test_result t = {0};
		json_t *entry;

		snprintf(where, sizeof(where), "tests[%zu]", i++);
		rc = json_slice_load_members(slice, where, TEST_MEMBERS, &entry, e);
		if (!rc)
			rc = test_result_parse(entry, where, &t, e);
		if (!rc)
			case_list_add(cases, &t, CASE_ALONE);
		test_result_release(&t);
		json_decref(entry);
	}
	return rc;
}

static int parse_document(const char *text, size_t n, struct report_file *ret, struct error *e)
{
	static const char *const keys[] = {"schema", "environment", "tests", "cut", NULL};
	struct case_list cases = {0};
	struct json_slice whole, v[4];
	json_t *schema = NULL, *environment = NULL, *cut = NULL;
	double n_cut = 0;

	int rc = json_slice_check(text, n, &whole, e);
	if (!rc)
		rc = json_slice_members(whole, "", keys, v, e);
	if (!rc && !v[0].p)
		rc = error_set(e, ERR_INVALID, "schema is missing; an Outpost report begins with {\"schema\": 1");
	if (!rc)
		rc = json_slice_load(v[0], "schema", &schema, e);
	if (!rc && !(json_is_number(schema) && json_number_value(schema) == 1))
		rc = error_set(e, ERR_INVALID, "schema must be 1");
	if (!rc && v[1].p)
		rc = json_slice_load(v[1], "environment", &environment, e);
	if (!rc && environment && !json_is_null(environment))
		rc = environment_text(environment, &ret->environment, e);
	/* The number of tests that the writer of the report left out. */
	if (!rc && v[3].p) {
		rc = json_slice_load(v[3], "cut", &cut, e);
		n_cut = json_number_value(cut);
		if (!rc && (!json_is_number(cut) || n_cut < 0 || n_cut > (double)REPORT_CUT_MAX ||
			       n_cut != (double)(int64_t)n_cut))
			rc = error_set(e, ERR_INVALID, "cut must be a number of tests");
	}
	if (!rc)
		rc = parse_tests(v[2], &cases, e);
	if (!rc) {
		case_list_finish(&cases, &ret->tests, &ret->n_tests, &ret->n_cut);
		ret->n_cut += (size_t)n_cut;
	}
	json_decref(schema);
	json_decref(environment);
	json_decref(cut);
	case_list_release(&cases);
	return rc;
}

bool outpost_parse_usual(const char *text, size_t n, struct report_file *ret)
{
	static const char *const path[] = {"tests", NULL};
	struct test_array read;
	bool is_read;

	if (!test_array_read(text, n, path, false, &read))
		return false;
	is_read = read.n <= REPORT_TESTS_MAX && parse_document(read.rest.data, read.rest.len, ret, NULL) == 0;
	if (is_read) {
		free(ret->tests);
		ret->tests = read.tests;
		ret->n_tests = read.n;
		ret->texts = read.texts;
		read.tests = NULL;
		read.texts = NULL;
	} else {
		report_file_release(ret);
	}
	test_array_release(&read);
	return is_read;
}

int outpost_parse(const char *text, size_t n, struct report_file *ret, struct error *e)
{
	return outpost_parse_usual(text, n, ret) ? 0 : parse_document(text, n, ret, e);
}

/* How much of a test is written, the most first. */
enum detail { WITH_TRACES, WITH_MESSAGES, WITH_LINKS, BARE };

static json_t *test_json(const struct test_result *t, enum detail detail)
{
	json_t *obj = json_object();

	json_set_str(obj, "suite", t->suite);
	json_set_str(obj, "name", t->name);
	json_set_str(obj, "status", test_status_name(t->status));
	if (t->duration_ms >= 0)
		json_object_set_new(obj, "duration", json_real((double)t->duration_ms / 1000));
	report_set_text(obj, "dtype", t->dtype);
	if (detail <= WITH_MESSAGES)
		report_set_text(obj, "message", t->message);
	if (detail <= WITH_TRACES)
		report_set_text(obj, "trace", t->trace);
	if (detail <= WITH_LINKS) {
		report_set_text(obj, "log_url", t->log_url);
		report_set_text(obj, "file", t->file);
		if (t->line)
			json_set_int(obj, "line", t->line);
	}
	report_set_number(obj, t);
	return obj;
}

char *report_file_text(const struct report_file *r, size_t *ret_bytes)
{
	struct buf out = BUF_INIT(REPORT_FILE_MAX_BYTES);
	enum detail detail = WITH_TRACES;
	bool is_whole;

	/* 20,000 bare cases always fit. */
	do {
		buf_clear(&out);
		buf_append_str(&out, "{\"schema\":1");
		if (r->environment)
			buf_appendf(&out, ",\"environment\":%s", r->environment);
		if (r->n_cut)
			buf_appendf(&out, ",\"cut\":%zu", r->n_cut);
		buf_append_str(&out, ",\"tests\":[");
		for (size_t i = 0; i < r->n_tests && !out.is_overflow; i++) {
			json_t *obj = test_json(&r->tests[i], detail);
			char *text = json_dumps(
			    obj, JSON_COMPACT | JSON_REAL_PRECISION(report_number_text(r->tests[i].number, NULL)));

			buf_append_str(&out, i ? ",\n" : "\n");
			buf_append_str(&out, text);
			free(text);
			json_decref(obj);
		}
		buf_append_str(&out, "\n]}\n");
		is_whole = !buf_status(&out);
	} while (!is_whole && detail++ < BARE);
	*ret_bytes = out.len;
	return buf_detach(&out);
}

void outpost_out(const struct report_out *o, struct buf *out)
{
	const struct report_file r = {
	    .tests = (struct test_result *)(uintptr_t)o->tests, /* only read */
	    .n_tests = o->n_tests,
	    .n_cut = (size_t)o->job->job.n_cut,
	    .environment = o->job->environment,
	};
	size_t n;
	char *text = report_file_text(&r, &n); /* shortens the text by its own rule */

	buf_append(out, text, n);
	free(text);
}
