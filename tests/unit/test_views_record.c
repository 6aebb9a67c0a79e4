/* Records as JSON, and docs/openapi.json against their lists. Runs in the root of the tree. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/change_view.h"
#include "model/history.h"
#include "model/platform.h"
#include "views/accelerator_page.h"
#include "views/job.h"
#include "views/record_json.h"

static json_t *schemas;

/* The schema of a field as docs/openapi.json has it: {"type": …, "description": …}. A new reference. */
static json_t *record_field_schema(const struct record_field *f)
{
	static const struct {
		const char *type, *format, *pattern;
		bool may_be_null;
	} TYPES[] = {
	    [RECORD_INT] = {"integer", NULL, NULL, false},
	    [RECORD_ID] = {"integer", NULL, NULL, true},
	    [RECORD_COUNT] = {"integer", NULL, NULL, true},
	    [RECORD_TIME] = {"string", "date-time", NULL, true},
	    [RECORD_BOOL] = {"boolean", NULL, NULL, false},
	    [RECORD_TEXT] = {"string", NULL, NULL, true},
	    [RECORD_COMMIT] = {"string", NULL, "^[0-9a-f]{40}$", true},
	    [RECORD_OBJECT] = {"object", NULL, NULL, true},
	    [RECORD_SECONDS] = {"number", NULL, NULL, true},
	    [RECORD_NUMBER] = {"number", NULL, NULL, false},
	    [RECORD_TEXTS] = {"array", NULL, NULL, false},
	    [RECORD_WORD] = {"string", NULL, NULL, true},
	    [RECORD_RANK] = {"string", NULL, NULL, true},
	};
	json_t *schema = json_object(), *type = json_array(), *names;

	/* The other types have no value in the JSON. */
	json_array_append_new(type, json_string(TYPES[f->type].type ? TYPES[f->type].type : "null"));
	if (TYPES[f->type].may_be_null)
		json_array_append_new(type, json_string("null"));
	json_object_set_new(schema, "type", type);
	if (TYPES[f->type].format)
		json_set_str(schema, "format", TYPES[f->type].format);
	if (TYPES[f->type].pattern)
		json_set_str(schema, "pattern", TYPES[f->type].pattern);
	if (f->words) {
		names = json_array();
		for (int i = 0; i < f->words->n; i++)
			if (f->words->names[i])
				json_array_append_new(names, json_string(f->words->names[i]));
		json_object_set_new(schema, "enum", names);
	}
	if (f->description[0])
		json_set_str(schema, "description", f->description);
	return schema;
}

/* A property of a schema, including those inherited with allOf. Borrowed. */
static json_t *find_property(json_t *schema, const char *name)
{
	json_t *found = json_at(schema, "properties", name, NULL), *part;
	size_t i;

	if (found)
		return found;
	json_array_foreach(json_object_get(schema, "allOf"), i,
	    part) if (json_at(part, "properties", name, NULL)) return json_at(part, "properties", name, NULL);
	json_array_foreach(json_object_get(schema, "oneOf"), i,
	    part) if (json_at(part, "properties", name, NULL)) return json_at(part, "properties", name, NULL);
	return NULL;
}

/* The schema itself: behind a $ref, or the part of a oneOf that is not null. Borrowed. */
static json_t *resolve(json_t *schema)
{
	const char *ref = json_get_str(schema, "$ref");
	json_t *parts = json_object_get(schema, "oneOf"), *part;
	size_t i;

	if (ref)
		return resolve(json_object_get(schemas, strrchr(ref, '/') + 1));
	json_array_foreach(parts, i, part) if (strcmp(json_get_str(part, "type") ? json_get_str(part, "type") : "",
						   "null") != 0) return resolve(part);
	return schema;
}

/* The schema at a path of properties and, with "[]", of the items of a list. Borrowed. */
static json_t *at(const char *name, const char *path)
{
	json_t *schema = json_object_get(schemas, name);
	char *copy = xstrdup(path), *rest = copy, *step;

	while ((step = strsep(&rest, ".")) && *step)
		schema =
		    resolve(strcmp(step, "[]") == 0 ? json_object_get(schema, "items") : find_property(schema, step));
	free(copy);
	return schema;
}

static bool has_type(json_t *types, json_t *type)
{
	json_t *one;
	size_t i;

	json_array_foreach(types, i, one) if (json_equal(one, type)) return true;
	return false;
}

/* The document may leave out words that never occur there, and may list null. */
static bool has_words(json_t *documented, json_t *names)
{
	json_t *one;
	size_t i;

	json_array_foreach(
	    json_object_get(documented, "enum"), i, one) if (!json_is_null(one) && !has_type(names, one)) return false;
	return json_object_get(documented, "enum") != NULL;
}

/* The document may add: that a value is never null, its minimum, its allowed texts. */
static void compare(json_t *documented, const struct record *r, const struct record_field *f)
{
	json_t *expected = record_field_schema(f), *types = json_object_get(expected, "type");
	json_t *type = json_object_get(documented, "type"), *one;
	const char *description = json_get_str(expected, "description");
	bool is_right = documented != NULL;
	size_t i;

	if (json_is_array(type))
		json_array_foreach(type, i, one) is_right &= has_type(types, one);
	else
		is_right &= has_type(types, type);
	for (i = 0; i < 2; i++) {
		const char *key = i ? "format" : "pattern";

		if (json_get_str(expected, key))
			is_right &= json_equal(json_object_get(expected, key), json_object_get(documented, key));
	}
	if (f->words)
		is_right &= has_words(documented, json_object_get(expected, "enum"));
	if (description)
		is_right &=
		    json_equal(json_object_get(expected, "description"), json_object_get(documented, "description"));
	if (!is_right) {
		char *text = json_text(expected), *found = documented ? json_text(documented) : NULL;

		print_error("%s.%s: docs/openapi.json has %s and needs %s\n", r->name, f->name,
		    found ? found : "nothing", text);
		fail();
	}
	json_decref(expected);
}

static void the_document_has_every_field(void **state)
{
	const struct {
		const struct record *record;
		json_t *schema;
	} list[] = {
	    {&dispatch_view_record, json_object_get(schemas, "Dispatch")},
	    {&base_delta_record, at("ChangeAccelerator", "delta")},
	    {&experiment_view_record, json_object_get(schemas, "Experiment")},
	    {&experiment_result_record, at("Experiment", "results.[]")},
	    {&accelerator_view_record, json_object_get(schemas, "ChangeAccelerator")},
	    {&verdict_view_record, json_object_get(schemas, "Verdict")},
	    {&change_view_record, json_object_get(schemas, "Change")},
	    {&test_result_record, at("Job", "tests.[]")},
	    {&test_counts_record, json_object_get(schemas, "TestCounts")},
	    {&day_view_record, json_object_get(schemas, "TrendDay")},
	    {&day_details_record, json_object_get(schemas, "TrendDayFull")},
	    {&dashboard_record, at("Dashboard", "newest")},
	    {&dashboard_row_record, at("Dashboard", "accelerators.[]")},
	    {&suite_view_record, at("Dashboard", "accelerators.[].suites.[]")},
	    {&running_view_record, at("Dashboard", "running.[]")},
	    {&page_job_record, json_object_get(schemas, "AcceleratorJob")},
	    {&page_machine_record, at("AcceleratorPage", "runners.[].machines.[]")},
	    {&page_red_record, at("AcceleratorPage", "red")},
	    {&page_commit_record, at("AcceleratorPage", "red.first_bad")},
	    {&page_experiments_record, at("AcceleratorPage", "experiments")},
	    {&schedule_view_record, at("AcceleratorPage", "schedule")},
	    {&schedule_view_record, at("Nightly", "accelerators.[].schedule")},
	    {&number_series_record, at("Numbers", "series.[]")},
	    {&number_point_record, at("Numbers", "series.[].points.[]")},
	    {&nightly_accelerator_record, at("Nightly", "accelerators.[]")},
	    {&nightly_mark_record, json_object_get(schemas, "Mark")},
	    {&nightly_commit_record, at("Nightly", "tests.[].cells.[].commits.known.[]")},
	    {&nightly_test_record, at("Nightly", "tests.[]")},
	    {&platform_test_record, at("Platform", "tested.[]")},
	    {&platform_must_pass_record, at("Platform", "tested.[].must_pass")},
	    {&job_view_record, json_object_get(schemas, "JobLine")},
	    {&job_detail_record, json_object_get(schemas, "Job")},
	    {&job_experiment_record, find_property(json_object_get(schemas, "Job"), "experiment")},
	    {&schedule_run_view_record, json_object_get(schemas, "Run")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		for (size_t k = 0; k < list[i].record->n; k++) {
			const struct record_field *f = &list[i].record->fields[k];

			if (f->name)
				compare(resolve(find_property(list[i].schema, f->name)), list[i].record, f);
		}
}

/* The text of each type. */
#define EACH_TYPE_RECORD(F, S)                                                                                         \
	F(S, INT, number, "int", "", "")                                                                               \
	F(S, ID, id, "id", "", "")                                                                                     \
	F(S, COUNT, n, "count", "", "")                                                                                \
	F(S, TIME, at_ms, "at", "", "")                                                                                \
	F(S, BOOL, is_so, "bool", "", "")                                                                              \
	F(S, TEXT, text, "text", "", "")                                                                               \
	F(S, SECONDS, took_ms, "took", "", "")                                                                         \
	F(S, NUMBER, real, "real", "", "")                                                                             \
	F(S, TEXTS, texts, "texts", "", "")                                                                            \
	F(S, TEST_STATUS, status, "status", "", "")                                                                    \
	F(S, LEVEL, level, "level", "", "")                                                                            \
	F(S, INT, hidden, NULL, "", "")
RECORD_LOCAL(each_type, EACH_TYPE_RECORD)

static void assert_text(const void *values, const char *expected)
{
	struct buf out = BUF_INIT(1 << 16);

	record_object_out(&out, NULL, &each_type_record, values);
	assert_string_equal(buf_str(&out), expected);
	buf_release(&out);
}

static void each_type_has_its_json(void **state)
{
	char outcome[] = "caf\xe9";
	struct schedule_run_view run = {.id = 7, .due_ms = 1700000000000, .outcome = outcome, .ended_ms = 0};
	struct job_detail job = {.kind = CHANGE_PUSH, .is_current = true, .number = 0};
	json_t *obj = json_object();

	(void)state;
	record_to_json(obj, &schedule_run_view_record, &run);
	assert_int_equal(json_get_int(obj, "id", 0), 7);
	assert_string_equal(json_get_str(obj, "due_at"), "2023-11-14T22:13:20Z");
	assert_true(json_is_null(json_object_get(obj, "ended_at")));
	assert_string_equal(json_get_str(obj, "outcome"), "caf\xEF\xBF\xBD");
	assert_true(json_is_null(json_object_get(obj, "upstream_sha")));
	record_to_json(obj, &job_detail_record, &job);
	assert_string_equal(json_get_str(obj, "kind"), "push");
	assert_true(json_is_true(json_object_get(obj, "current")));
	assert_true(json_is_null(json_object_get(obj, "number")));
	assert_true(json_is_null(json_object_get(obj, "environment")));
	assert_null(json_object_get(obj, "log_bytes")); /* has no name */
	json_decref(obj);
	job.number = 12;
	job.environment = (char *)"{\"torch\": [1.5, \"2\\n\", {}]}";
	obj = record_json(&job_detail_record, &job);
	assert_int_equal(json_get_int(obj, "number", 0), 12);
	assert_string_equal(json_string_value(json_array_get(json_at(obj, "environment", "torch", NULL), 1)), "2\n");
	json_decref(obj);
}

static void each_type_has_its_text(void **state)
{
	char outcome[] = "caf\xe9";

	(void)state;
	assert_text(&(struct each_type){.n = -1, .took_ms = -1, .status = N_TEST_STATUSES},
	    "{\"int\":0,\"id\":null,\"count\":null,\"at\":null,\"bool\":false,\"text\":null,\"took\":null,\"real\":0.0,"
	    "\"texts\":[],\"status\":null,\"level\":null}");
	assert_text(&(struct each_type){7, 8, 0, 1700000000123, true, outcome, 1234, 0.1,
			(char *[]){(char *)"a", outcome, NULL}, TEST_SKIP, LEVEL_4, 5},
	    "{\"int\":7,\"id\":8,\"count\":0,\"at\":\"2023-11-14T22:13:20Z\",\"bool\":true,\"text\":"
	    "\"caf\xEF\xBF\xBD\","
	    "\"took\":1.234,\"real\":0.10000000000000001,\"texts\":[\"a\",\"caf\xEF\xBF\xBD\"],\"status\":\"SKIP\","
	    "\"level\":\"L4\"}");
}

static int set_up(void **state)
{
	json_t *document = json_load_file("docs/openapi.json", 0, NULL);

	*state = document;
	schemas = json_at(document, "components", "schemas", NULL);
	return schemas ? 0 : -1;
}

static int tear_down(void **state)
{
	json_decref(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_document_has_every_field),
	    cmocka_unit_test(each_type_has_its_json),
	    cmocka_unit_test(each_type_has_its_text),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
