/* Outpost JSON, version 1: contract 6.1 and docs/report.schema.json, which say the same. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "report/case_list.h"
#include "report/json_slice.h"
#include "report/report_parse.h"

enum { WHERE_BYTES = 48 };
static const int64_t CUT_MAX = INT64_C(1) << 40;

/* Absent and null are fine. */
static int check_texts(
    const json_t *obj, const char *where, const char *const *keys, struct error *e)
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
	static const char *const keys[] = {
	    "accelerator", "device", "os", "driver", "torch", "torch_commit", NULL};
	static const char *const extension_keys[] = {"name", "version", NULL};
	const json_t *extension = json_object_get(environment, "extension");
	char *text;
	int rc;

	*ret = NULL;
	if (!json_is_object(environment))
		return error_set(e, ERR_INVALID, "environment must be an object");
	rc = check_texts(environment, "environment", keys, e);
	if (rc)
		return rc;
	if (extension && !json_is_null(extension)) {
		if (!json_is_object(extension))
			return error_set(e, ERR_INVALID, "environment.extension must be an object");
		rc = check_texts(extension, "environment.extension", extension_keys, e);
		if (rc)
			return rc;
	}
	text = json_text(environment);
	if (strlen(text) > ENVIRONMENT_MAX_BYTES) {
		free(text);
		return error_set(e, ERR_INVALID, "environment is longer than %d KiB",
		    ENVIRONMENT_MAX_BYTES >> 10);
	}
	*ret = text;
	return 0;
}

static int parse_environment(struct json_slice value, char **ret, struct error *e)
{
	json_t *v;
	int rc;

	if (!value.p)
		return 0;
	rc = json_slice_load(value, "environment", &v, e);
	if (!rc && !json_is_null(v))
		rc = environment_text(v, ret, e);
	json_decref(v);
	return rc;
}

static int parse_schema(struct json_slice value, struct error *e)
{
	json_t *v;
	bool is_known;
	int rc;

	if (!value.p)
		return error_set(e, ERR_INVALID,
		    "schema is missing; an Outpost report begins with {\"schema\": 1");
	rc = json_slice_load(value, "schema", &v, e);
	is_known = json_is_number(v) && json_number_value(v) == 1;
	json_decref(v);
	if (!rc && !is_known)
		return error_set(e, ERR_INVALID, "schema must be 1");
	return rc;
}

/* What whoever put the report together has left out already. */
static int parse_cut(struct json_slice value, size_t *ret, struct error *e)
{
	json_t *v;
	double n;
	int rc;

	*ret = 0;
	if (!value.p)
		return 0;
	rc = json_slice_load(value, "cut", &v, e);
	n = json_number_value(v);
	if (!rc && (!json_is_number(v) || n < 0 || n > (double)CUT_MAX || n != (double)(int64_t)n))
		rc = error_set(e, ERR_INVALID, "cut must be a number of tests");
	if (!rc)
		*ret = (size_t)n;
	json_decref(v);
	return rc;
}

static int parse_entry(
    struct json_slice value, const char *where, struct case_list *cases, struct error *e)
{
	static const char *const keys[] = {"suite", "name", "status", "duration", "dtype",
	    "message", "trace", "log_url", "number", "file", "line", NULL};
	struct test_result t = {0};
	json_t *entry;
	int rc;

	rc = json_slice_load_members(value, where, keys, &entry, e);
	if (!rc)
		rc = test_result_parse(entry, where, &t, e);
	if (!rc)
		case_list_add(cases, &t, CASE_ALONE);
	test_result_release(&t);
	json_decref(entry);
	return rc;
}

static int parse_tests(struct json_slice value, struct case_list *cases, struct error *e)
{
	struct json_slice key, entry;
	struct json_iter it;
	char where[WHERE_BYTES];
	size_t i = 0;
	int rc = 0;

	if (!value.p)
		return error_set(e, ERR_INVALID, "tests is missing");
	if (!json_iter_init(&it, value, '['))
		return error_set(e, ERR_INVALID, "tests must be an array");
	while (!rc && json_iter_next(&it, &key, &entry)) {
		snprintf(where, sizeof(where), "tests[%zu]", i++);
		rc = parse_entry(entry, where, cases, e);
	}
	return rc;
}

int outpost_report_parse(const char *text, size_t n, struct report_file *ret, struct error *e)
{
	static const char *const keys[] = {"schema", "environment", "tests", "cut", NULL};
	struct case_list cases = {0};
	struct json_slice whole, v[4];
	size_t n_cut_before = 0;
	int rc;

	rc = json_slice_check(text, n, &whole, e);
	if (!rc)
		rc = json_slice_members(whole, "", keys, v, e);
	if (!rc)
		rc = parse_schema(v[0], e);
	if (!rc)
		rc = parse_environment(v[1], &ret->environment, e);
	if (!rc)
		rc = parse_cut(v[3], &n_cut_before, e);
	if (!rc)
		rc = parse_tests(v[2], &cases, e);
	if (!rc) {
		case_list_finish(&cases, &ret->tests, &ret->n_tests, &ret->n_cut);
		ret->n_cut += n_cut_before;
	}
	case_list_release(&cases);
	return rc;
}
