/* Writes JUnit XML as most tools read it, and the properties of formats.h for everything else. */

#include "documents/formats.h"

/* Many readers expect a name only once in a <testsuite>: a test that was reported twice goes into a second
 * element for the same suite. */
struct entry {
	const struct test_result *test;
	char *name; /* as it is shown: "llama3 (bf16)" */
	size_t index, suite_index, occurrence;
};

static int compare_suite_names(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int order = strcmp(a->test->suite, b->test->suite);

	if (!order)
		order = strcmp(a->name, b->name);
	return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int compare_places(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->suite_index != b->suite_index)
		return a->suite_index < b->suite_index ? -1 : 1;
	if (a->occurrence != b->occurrence)
		return a->occurrence < b->occurrence ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* Sorts the suites by their first test. */
static void place_entries(struct entry *list, size_t n)
{
	qsort(list, n, sizeof(*list), compare_suite_names);
	for (size_t from = 0, to; from < n; from = to) {
		size_t first = list[from].index;

		for (to = from; to < n && !strcmp(list[to].test->suite, list[from].test->suite); to++) {
			first = list[to].index < first ? list[to].index : first;
			if (to > from && !strcmp(list[to].name, list[to - 1].name))
				list[to].occurrence = list[to - 1].occurrence + 1;
		}
		for (size_t i = from; i < to; i++)
			list[i].suite_index = first;
	}
	qsort(list, n, sizeof(*list), compare_places);
}

static void put_totals(struct buf *out, const struct entry *list, size_t n)
{
	size_t n_failures = 0, n_errors = 0, n_skipped = 0;
	int64_t ms = 0;

	for (size_t i = 0; i < n; i++) {
		enum test_status status = list[i].test->status;

		n_failures += status == TEST_FAIL;
		n_errors += status == TEST_ERROR || status == TEST_MISS;
		n_skipped += status == TEST_SKIP;
		ms += list[i].test->duration_ms > 0 ? list[i].test->duration_ms : 0;
	}
	buf_appendf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\"", n, n_failures,
	    n_errors, n_skipped, (double)ms / 1000);
}

static void put_property(struct buf *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buf_append_str(out, "<property");
	escape_xml_attribute(out, "name", name);
	escape_xml_attribute(out, "value", value);
	buf_append_str(out, "/>");
}

static void put_case(struct buf *out, const struct report_out *o, const struct entry *e)
{
	static const char *const elements[N_TEST_STATUSES] = {
	    [TEST_FAIL] = "failure", [TEST_ERROR] = "error", [TEST_MISS] = "error", [TEST_SKIP] = "skipped"};
	const struct test_result *t = e->test;
	bool is_finer = t->status == TEST_MISS || t->status == TEST_DONE;
	const char *element = elements[t->status], *trace = report_out_trace(o, t);
	char number[32];
	char time[32], line[24];

	buf_append_str(out, "<testcase");
	escape_xml_attribute(out, "classname", t->suite);
	escape_xml_attribute(out, "name", e->name);
	snprintf(time, sizeof(time), "%.3f", (double)t->duration_ms / 1000);
	escape_xml_attribute(out, "time", t->duration_ms >= 0 ? time : NULL);
	escape_xml_attribute(out, "file", t->file);
	/* our reader expects pytest's lines to start at 0 */
	snprintf(line, sizeof(line), "%lld", (long long)t->line - str_eq(t->suite, "pytest"));
	if (t->file && t->line)
		escape_xml_attribute(out, "line", line);
	buf_append_char(out, '>');
	if (is_finer || t->has_number || t->dtype || t->log_url) {
		buf_append_str(out, "<properties>");
		put_property(out, JUNIT_STATUS, is_finer ? test_status_name(t->status) : NULL);
		put_property(out, JUNIT_DTYPE, t->dtype);
		if (t->has_number) {
			report_number_text(t->number, number);
			put_property(out, JUNIT_NUMBER, number);
			put_property(out, JUNIT_UNIT, t->unit);
		}
		put_property(out, JUNIT_LOG_URL, o->detail < REPORT_BARE ? t->log_url : NULL);
		buf_append_str(out, "</properties>");
	}
	if (element) {
		buf_appendf(out, "<%s", element);
		escape_xml_attribute(out, "message", report_out_message(o, t));
		if (t->status != TEST_SKIP && trace) {
			buf_append_char(out, '>');
			escape_xml_text(out, trace);
			buf_appendf(out, "</%s>", element);
		} else {
			buf_append_str(out, "/>");
		}
	}
	buf_append_str(out, "</testcase>\n");
}

static void put_suite(struct buf *out, const struct report_out *o, const struct entry *list, size_t n, bool is_first)
{
	const char *text = o->job->environment;
	char n_cut[24];
	json_t *v = NULL;
	char started[RFC3339_BYTES];

	buf_append_str(out, "<testsuite");
	escape_xml_attribute(out, "name", list->test->suite);
	put_totals(out, list, n);
	if (o->job->job.started_ms)
		escape_xml_attribute(out, "timestamp", rfc3339_format(o->job->job.started_ms, started));
	escape_xml_attribute(out, "hostname", o->job->machine);
	buf_append_str(out, ">\n");
	snprintf(n_cut, sizeof(n_cut), "%lld", (long long)o->job->job.n_cut);
	if (text && json_parse(text, strlen(text), &v, NULL))
		v = NULL;
	if (is_first && (v || o->job->job.n_cut)) {
		buf_append_str(out, "<properties>");
		put_property(out, JUNIT_CUT, o->job->job.n_cut ? n_cut : NULL);
		for (const struct junit_environment *e = JUNIT_ENVIRONMENT; e->property; e++) {
			const json_t *of = e->object ? json_object_get(v, e->object) : v;

			put_property(out, e->property, json_get_str(of, e->key));
		}
		buf_append_str(out, "</properties>\n");
	}
	json_decref(v);
	for (size_t i = 0; i < n && !out->is_overflow; i++)
		put_case(out, o, &list[i]);
	buf_append_str(out, "</testsuite>\n");
}

void junit_out(const struct report_out *o, struct buf *out)
{
	struct entry *list = xcalloc(o->n_tests, sizeof(*list));
	char *title = xasprintf("%s: %s / %s", o->job->accelerator, o->job->job.workflow, o->job->job.name);

	for (size_t i = 0; i < o->n_tests; i++) {
		const struct test_result *t = &o->tests[i];

		list[i] = (struct entry){.test = t, .index = i};
		list[i].name = t->dtype ? xasprintf("%s (%s)", t->name, t->dtype) : xstrdup(t->name);
	}
	place_entries(list, o->n_tests);
	buf_append_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
	escape_xml_attribute(out, "name", title);
	put_totals(out, list, o->n_tests);
	buf_append_str(out, ">\n");
	for (size_t from = 0, to; from < o->n_tests; from = to) {
		for (to = from + 1; to < o->n_tests && list[to].suite_index == list[from].suite_index &&
				    list[to].occurrence == list[from].occurrence;)
			to++;
		put_suite(out, o, &list[from], to - from, from == 0);
	}
	buf_append_str(out, "</testsuites>\n");
	for (size_t i = 0; i < o->n_tests; i++)
		free(list[i].name);
	FREE_ALL(list, title);
}
