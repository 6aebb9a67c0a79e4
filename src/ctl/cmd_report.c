#include "base/alloc.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/str.h"
#include "ctl/arguments.h"
#include "ctl/report_input.h"
#include "ctl/server.h"
#include "report/table.h"

enum { RED_SHOWN = 5, NAME_CHARS = 100, VALUE_CHARS = 200 };

static const char *const FORMAT_TITLES[N_REPORT_FORMATS] = {
    [REPORT_JUNIT] = "JUnit XML", [REPORT_CTRF] = "CTRF", [REPORT_OUTPOST] = "Outpost report"};

static const char *sign_of(enum test_status status)
{
	const struct verdict_view verdict = {.status = status};
	const struct table_cell cell = {.kind = CELL_VERDICT, .verdict = &verdict};

	return table_cell_symbol(&cell);
}

static const char *colour_of(const struct ctl *ctl, enum test_status status)
{
	if (!ctl->has_colour)
		return "";
	if (test_status_is_red(status))
		return "\033[31m";
	return status == TEST_PASS ? "\033[32m" : "\033[2m";
}

static void count(const struct report_file *r, size_t n_of[N_TEST_STATUSES])
{
	memset(n_of, 0, N_TEST_STATUSES * sizeof(*n_of));
	for (size_t i = 0; i < r->n_tests; i++)
		n_of[r->tests[i].status]++;
}

static void print_counts(const struct ctl *ctl, const struct report_file *r)
{
	static const struct {
		enum test_status status;
		const char *words;
	} lines[] = {
	    {TEST_PASS, "passed"},
	    {TEST_FAIL, "failed"},
	    {TEST_ERROR, "broke"},
	    {TEST_MISS, "without a result"},
	    {TEST_DONE, "measured"},
	    {TEST_SKIP, "skipped"},
	};
	size_t n_of[N_TEST_STATUSES];

	count(r, n_of);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (n_of[lines[i].status])
			printf("  %s%s%s %6zu %s\n", colour_of(ctl, lines[i].status),
			    sign_of(lines[i].status), ctl->has_colour ? "\033[0m" : "",
			    n_of[lines[i].status], lines[i].words);
}

/* The message of one red test, on a line of its own where there is a terminal to fit into. */
static void print_red(const struct ctl *ctl, const struct test_result *t)
{
	struct buf line = BUF_INIT(8192);
	size_t room = ctl->is_terminal ? (size_t)ctl->width - 4 : 0;

	printf("  %s%s%s ", colour_of(ctl, t->status), sign_of(t->status),
	    ctl->has_colour ? "\033[0m" : "");
	escape_line(&line, t->suite, NAME_CHARS);
	buf_append_char(&line, '/');
	escape_line(&line, t->name, NAME_CHARS);
	puts(buf_str(&line));
	if (t->message) {
		buf_clear(&line);
		escape_line(&line, t->message, room);
		printf("    %s\n", buf_str(&line));
	}
	buf_release(&line);
}

static void print_reds(const struct ctl *ctl, const struct report_file *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_tests; i++) {
		if (!test_status_is_red(r->tests[i].status))
			continue;
		if (n == 0)
			puts("");
		if (n++ < RED_SHOWN)
			print_red(ctl, &r->tests[i]);
	}
	if (n > RED_SHOWN)
		printf("  and %zu more\n", n - RED_SHOWN);
}

static void print_environment(const struct report_file *r)
{
	static const char *const keys[] = {
	    "accelerator", "device", "os", "driver", "torch", "torch_commit"};
	struct buf line = BUF_INIT(8192);
	const char *extension, *version;
	json_t *v;

	if (!r->environment || json_parse(r->environment, strlen(r->environment), &v, NULL))
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!json_get_str(v, keys[i]))
			continue;
		buf_appendf(&line, "  %-13s", keys[i]);
		escape_line(&line, json_get_str(v, keys[i]), VALUE_CHARS);
		buf_append_char(&line, '\n');
	}
	extension = json_string_value(json_at(v, "extension", "name", NULL));
	version = json_string_value(json_at(v, "extension", "version", NULL));
	if (extension) {
		buf_append_str(&line, "  extension    ");
		escape_line(&line, extension, VALUE_CHARS);
		buf_append_char(&line, ' ');
		escape_line(&line, version ? version : "", VALUE_CHARS);
		buf_append_char(&line, '\n');
	}
	if (line.len)
		printf("\n%s", buf_str(&line));
	buf_release(&line);
	json_decref(v);
}

static void print_hint(const char *hint, void *owner)
{
	bool *is_first = owner;

	printf("%shint: %s\n", *is_first ? "\n" : "", hint);
	*is_first = false;
}

static void print_summary(const struct ctl *ctl, const char *path, const struct report_input *in)
{
	bool is_first = true;

	printf("%s: %s, %zu test%s\n", path, FORMAT_TITLES[in->format], in->report.n_tests,
	    in->report.n_tests == 1 ? "" : "s");
	print_counts(ctl, &in->report);
	print_reds(ctl, &in->report);
	print_environment(&in->report);
	report_hints(in, print_hint, &is_first);
}

/* ---- for programs ---- */

static void add_hint(const char *hint, void *owner)
{
	json_array_append_new(owner, json_string(hint));
}

static json_t *reds_json(const struct report_file *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_tests; i++) {
		const struct test_result *t = &r->tests[i];
		json_t *obj;

		if (!test_status_is_red(t->status))
			continue;
		obj = json_object();
		json_set_str(obj, "suite", t->suite);
		json_set_str(obj, "name", t->name);
		json_set_str(obj, "status", test_status_name(t->status));
		json_set_str(obj, "message", t->message);
		json_array_append_new(list, obj);
	}
	return list;
}

static json_t *summary_json(const struct report_input *in)
{
	json_t *obj = json_object(), *counts = json_object(), *hints = json_array();
	json_t *environment = NULL;
	size_t n_of[N_TEST_STATUSES];

	count(&in->report, n_of);
	for (int s = 0; s < N_TEST_STATUSES; s++)
		json_set_int(counts, test_status_name((enum test_status)s), (int64_t)n_of[s]);
	report_hints(in, add_hint, hints);
	if (in->report.environment)
		environment = json_loads(in->report.environment, 0, NULL);
	json_object_set_new(obj, "ok", json_true());
	json_set_str(obj, "format", report_format_name(in->format));
	json_set_int(obj, "tests", (int64_t)in->report.n_tests);
	json_set_int(obj, "cut", (int64_t)in->report.n_cut);
	json_object_set_new(obj, "counts", counts);
	json_object_set_new(obj, "red", reds_json(&in->report));
	json_object_set_new(obj, "environment", environment ? environment : json_null());
	json_object_set_new(obj, "hints", hints);
	return obj;
}

static int refuse(const struct ctl *ctl, const struct error *why)
{
	struct buf line = BUF_INIT(4096);
	json_t *obj;

	escape_line(&line, why->text, 0);
	fprintf(stderr, "%s\n", buf_str(&line));
	if (ctl->is_json) {
		obj = json_object();
		json_object_set_new(obj, "ok", json_false());
		json_set_str(obj, "error", buf_str(&line));
		server_print_json(obj);
	}
	buf_release(&line);
	return EXIT_FAILED;
}

int cmd_report_validate(const struct ctl *ctl, int argc, char **argv)
{
	const char *formats[N_REPORT_FORMATS + 1] = {NULL}, *path, *format = NULL;
	const struct argument_option options[] = {
	    {.name = "--format", .text = &format, .choices = formats}, {.name = NULL}};
	enum report_format wanted;
	struct report_input in;
	int exit_code = EXIT_DONE, rc;

	for (int f = 0; f < N_REPORT_FORMATS; f++)
		formats[f] = report_format_name((enum report_format)f);
	if (!arguments_read("report validate", argc, argv, options, &path, 1, 1))
		return EXIT_USAGE;
	wanted = format ? report_format_parse(format) : N_REPORT_FORMATS;
	rc = report_input_read(&in, path, wanted);
	if (rc)
		exit_code = refuse(ctl, &in.why);
	else if (ctl->is_json)
		exit_code = server_print_json(summary_json(&in));
	else
		print_summary(ctl, path, &in);
	report_input_release(&in);
	return exit_code;
}
