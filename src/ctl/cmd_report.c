/* outpostctl report validate: reads a report file as the service would, and shows its content.
 * outpostctl report push: sends a report file with one PUT, so that a vendor's CI needs neither curl nor jq. It
 * reads the report first, because a mistake is easier to explain here than in the service's answer. */

#include "config/config.h"
#include "config/runner_file.h"
#include "ctl/server.h"
#include "documents/report_file.h"
#include "http/client.h"
#include "text/table.h"

enum { NAMED_MAX = 5, SHOWN_CHARS = 60, RED_SHOWN = 5, NAME_CHARS = 100, VALUE_CHARS = 200 };
enum { TOKEN_MAX_BYTES = 16 << 10, ANSWER_MAX_BYTES = 1 << 20, PUSH_TIMEOUT_MS = 600 * 1000 };

struct report_input {
	struct buf text;
	enum report_format format;
	struct report_file report;
	struct error why; /* "FILE: line 12: …" */
};

/* Reads and parses the file. format N_REPORT_FORMATS: guess it from the content. Returns 0, or a code
 * with `why` set; report_input_release() it either way. */
static int report_input_read(struct report_input *in, const char *path, enum report_format format)
{
	struct error why = {0};

	*in = (struct report_input){.text = BUF_INIT(REPORT_FILE_MAX_BYTES)};
	int rc = file_read(path, &in->text, &in->why);
	if (rc)
		return rc;
	in->format = format == N_REPORT_FORMATS ? report_format_guess(buf_str(&in->text), in->text.len) : format;
	rc = report_file_parse(in->format, buf_str(&in->text), in->text.len, &in->report, &why);
	if (rc)
		error_set(&in->why, rc, "%s: %s", path, why.text);
	return rc;
}

static void report_input_release(struct report_input *in)
{
	buf_release(&in->text);
	report_file_release(&in->report);
}

static const char *const SUITES[] = {"build", "unit", "model", "benchmark", "integration"};

/* Appends the first few suites that are not in SUITES, quoted. Returns how many. */
static size_t append_own_suites(const struct report_file *r, struct buf *out)
{
	const char *seen[ARRAY_LEN(SUITES) + NAMED_MAX];
	size_t n_known = ARRAY_LEN(SUITES), n = n_known;

	memcpy(seen, SUITES, sizeof(SUITES));
	for (size_t i = 0, k; i < r->n_tests; i++) {
		const char *suite = r->tests[i].suite;

		for (k = 0; k < n && !str_eq(seen[k], suite);)
			k++;
		if (k < n)
			continue;
		if (n == ARRAY_LEN(seen)) {
			buf_append_str(out, ", …");
			break;
		}
		buf_append_str(out, n > n_known ? ", '" : "'");
		escape_line(out, suite, SHOWN_CHARS);
		buf_append_char(out, '\'');
		seen[n++] = suite;
	}
	return n - n_known;
}

static int compare_file_names(const void *a, const void *b)
{
	const struct test_result *x = *(const struct test_result *const *)a;
	const struct test_result *y = *(const struct test_result *const *)b;
	int order = strcmp(x->suite, y->suite);

	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->dtype ? x->dtype : "", y->dtype ? y->dtype : "");
}

static void add_hint(json_t *hints, struct buf *line)
{
	json_array_append_new(hints, json_string(buf_str(line)));
	buf_clear(line);
}

/* Sentences about content that is valid but probably a mistake. */
static json_t *report_hints(const struct report_input *in)
{
	const struct report_file *r = &in->report;
	struct buf line = BUF_INIT(4096);
	const struct test_result **sorted = xcalloc(r->n_tests, sizeof(*sorted)), *twice = NULL;
	json_t *hints = json_array();
	size_t n_passed = 0;
	size_t n = append_own_suites(r, &line);

	if (n) {
		buf_appendf(&line, " %s build, unit, model, benchmark or integration; own suites are allowed%s",
		    n == 1 ? "is not one of" : "are not among",
		    in->format == REPORT_JUNIT
			? " (the testsuite's name is the suite; pytest: -o junit_suite_name=model)"
			: "");
		add_hint(hints, &line);
	}
	/* The first test that has the same name as another, and the number of such tests. */
	n = 0;
	for (size_t i = 0; i < r->n_tests; i++)
		sorted[i] = &r->tests[i];
	qsort(sorted, r->n_tests, sizeof(*sorted), compare_file_names);
	for (size_t i = 1; i < r->n_tests; i++) {
		if (compare_file_names(&sorted[i - 1], &sorted[i]))
			continue;
		twice = twice ? twice : sorted[i];
		n++;
	}
	free(sorted);
	if (twice) {
		buf_appendf(&line, "%zu entries have the same name as another, such as '", n);
		escape_line(&line, twice->suite, SHOWN_CHARS);
		buf_append_char(&line, '/');
		escape_line(&line, twice->name, SHOWN_CHARS);
		buf_append_str(&line, "': they share one cell, which shows the worst result");
		add_hint(hints, &line);
	}
	if (r->n_cut) {
		buf_appendf(&line, "%zu cases are cut: a report may have at most %d", r->n_cut, REPORT_TESTS_MAX);
		add_hint(hints, &line);
	}
	for (size_t i = 0; i < r->n_tests; i++)
		n_passed += r->tests[i].status == TEST_PASS || r->tests[i].status == TEST_DONE;
	if (!n_passed)
		json_array_append_new(hints, json_string("no test passed or measured anything"));
	if (!r->environment && in->format != REPORT_JUNIT)
		json_array_append_new(
		    hints, json_string("no environment: readers cannot see the device and versions of this run"));
	buf_release(&line);
	return hints;
}

static const char *const FORMAT_TITLES[N_REPORT_FORMATS] = {
    [REPORT_JUNIT] = "JUnit XML", [REPORT_CTRF] = "CTRF", [REPORT_OUTPOST] = "Outpost report"};

/* Prints the symbol of a status, in its colour, after two blanks. */
static void print_symbol(const struct ctl *ctl, enum test_status status)
{
	const struct verdict_view verdict = {.status = status};
	const struct table_cell cell = {.kind = CELL_VERDICT, .verdict = &verdict};
	const char *colour = test_status_is_red(status) ? "\033[31m" : status == TEST_PASS ? "\033[32m" : "\033[2m";

	printf("  %s%s%s", ctl->has_colour ? colour : "", table_cell_symbol(&cell), ctl->has_colour ? "\033[0m" : "");
}

static void print_counts(const struct ctl *ctl, const struct report_file *r)
{
	static const struct {
		enum test_status status;
		const char *words;
	} lines[] = {{TEST_PASS, "passed"}, {TEST_FAIL, "failed"}, {TEST_ERROR, "broken"},
	    {TEST_MISS, "without a result"}, {TEST_DONE, "measured"}, {TEST_SKIP, "skipped"}};
	size_t n_of[N_TEST_STATUSES] = {0};

	for (size_t i = 0; i < r->n_tests; i++)
		n_of[r->tests[i].status]++;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (n_of[lines[i].status]) {
			print_symbol(ctl, lines[i].status);
			printf(" %6zu %s\n", n_of[lines[i].status], lines[i].words);
		}
}

static void print_reds(const struct ctl *ctl, const struct report_file *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_tests; i++) {
		const struct test_result *t = &r->tests[i];
		struct buf line = BUF_INIT(8192);

		if (!test_status_is_red(t->status))
			continue;
		if (n == 0)
			puts("");
		if (n++ >= RED_SHOWN)
			continue;
		/* One red test, and its message cut to the width of a terminal. */
		print_symbol(ctl, t->status);
		escape_line(&line, t->suite, NAME_CHARS);
		buf_append_char(&line, '/');
		escape_line(&line, t->name, NAME_CHARS);
		printf(" %s\n", buf_str(&line));
		if (t->message) {
			buf_clear(&line);
			escape_line(&line, t->message, ctl->is_terminal ? (size_t)ctl->width - 4 : 0);
			printf("    %s\n", buf_str(&line));
		}
		buf_release(&line);
	}
	if (n > RED_SHOWN)
		printf("  and %zu more\n", n - RED_SHOWN);
}

static void add_environment_line(struct buf *out, const char *key, const char *value, const char *version)
{
	if (!value)
		return;
	buf_appendf(out, "  %-13s", key);
	escape_line(out, value, VALUE_CHARS);
	buf_append_str(out, version ? " " : "");
	escape_line(out, version ? version : "", VALUE_CHARS);
	buf_append_char(out, '\n');
}

static void print_environment(const struct report_file *r)
{
	static const char *const keys[] = {"accelerator", "device", "os", "driver", "torch", "torch_commit"};
	struct buf lines = BUF_INIT(8192);
	json_t *v;

	if (!r->environment || json_parse(r->environment, strlen(r->environment), &v, NULL))
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		add_environment_line(&lines, keys[i], json_get_str(v, keys[i]), NULL);
	const json_t *extension = json_object_get(v, "extension");
	add_environment_line(&lines, "extension", json_get_str(extension, "name"), json_get_str(extension, "version"));
	if (lines.len)
		printf("\n%s", buf_str(&lines));
	buf_release(&lines);
	json_decref(v);
}

static json_t *report_summary_json(const struct report_input *in)
{
	json_t *counts = json_object(), *reds = json_array(), *environment = NULL;
	size_t n_of[N_TEST_STATUSES] = {0};

	for (size_t i = 0; i < in->report.n_tests; i++)
		n_of[in->report.tests[i].status]++;
	for (int s = 0; s < N_TEST_STATUSES; s++)
		json_set_int(counts, test_status_name((enum test_status)s), (int64_t)n_of[s]);
	for (size_t i = 0; i < in->report.n_tests; i++) {
		const struct test_result *t = &in->report.tests[i];

		if (!test_status_is_red(t->status))
			continue;
		json_t *red = json_object();
		json_set_str(red, "suite", t->suite);
		json_set_str(red, "name", t->name);
		json_set_str(red, "status", test_status_name(t->status));
		json_set_str(red, "message", t->message);
		json_array_append_new(reds, red);
	}
	if (in->report.environment)
		environment = json_loads(in->report.environment, 0, NULL);
	return json_pack("{s:b, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "ok", 1, "format", report_format_name(in->format),
	    "tests", (json_int_t)in->report.n_tests, "cut", (json_int_t)in->report.n_cut, "counts", counts, "red", reds,
	    "environment", environment ? environment : json_null(), "hints", report_hints(in));
}

int cmd_report_validate(const struct ctl *ctl)
{
	const char *formats[N_REPORT_FORMATS + 1] = {NULL}, *path, *format = NULL;
	const struct argument_option options[] = {
	    {.name = "--format", .text = &format, .choices = formats}, {.name = NULL}};
	struct report_input in;
	int exit_code = EXIT_DONE;

	for (int f = 0; f < N_REPORT_FORMATS; f++)
		formats[f] = report_format_name((enum report_format)f);
	if (!arguments_read(ctl, options, &path, 1, 1))
		return EXIT_USAGE;
	enum report_format expected = format ? report_format_parse(format) : N_REPORT_FORMATS;
	int rc = report_input_read(&in, path, expected);
	if (rc) {
		struct buf line = BUF_INIT(4096);

		escape_line(&line, in.why.text, 0);
		fprintf(stderr, "%s\n", buf_str(&line));
		if (ctl->is_json) {
			json_t *obj = json_object();

			json_object_set_new(obj, "ok", json_false());
			json_set_str(obj, "error", buf_str(&line));
			server_print_json(obj);
		}
		buf_release(&line);
		exit_code = EXIT_FAILED;
	} else if (ctl->is_json) {
		exit_code = server_print_json(report_summary_json(&in));
	} else {
		json_t *hints = report_hints(&in);
		json_t *hint;
		size_t i;

		printf("%s: %s, %zu test%s\n", path, FORMAT_TITLES[in.format], in.report.n_tests,
		    in.report.n_tests == 1 ? "" : "s");
		print_counts(ctl, &in.report);
		print_reds(ctl, &in.report);
		print_environment(&in.report);
		json_array_foreach(hints, i, hint) printf("%shint: %s\n", i ? "" : "\n", json_string_value(hint));
		json_decref(hints);
	}
	report_input_release(&in);
	return exit_code;
}

struct push {
	const char *path, *url, *token_file;
	int64_t job;
};

static int print_failure(const char *what, const char *detail)
{
	fprintf(stderr, "outpostctl: %s%s\n", what, detail);
	return EXIT_FAILED;
}

/* The service's address without a trailing slash. NULL after explaining why. free(). */
static char *find_service_url(const struct ctl *ctl, const struct push *p)
{
	struct error e = {0};
	char *url = p->url && *p->url ? xstrdup(p->url) : NULL, why[WHY_BYTES];
	int rc = url ? 0 : config_public_url(ctl->config_path, &url, &e);

	if (rc) {
		print_failure("no address of the service: set --url or OUTPOST_URL; ", e.text);
		return NULL;
	}
	if (!check_server_url(NULL, url, why)) {
		fprintf(stderr, "outpostctl: %s: must be %s\n", url, why);
		FREE_AND_NULL(url);
	}
	url_cut_slashes(url);
	return url;
}

/* The header that carries the credential. NULL after explaining why. Wipe it before free(). */
static char *make_authorization(const struct push *p)
{
	struct buf text = BUF_INIT(TOKEN_MAX_BYTES);
	const char *from = getenv("OUTPOST_TOKEN");
	struct error why = {0};
	char *header = NULL;
	size_t n;

	if (p->token_file && file_read(p->token_file, &text, &why)) {
		print_failure(why.text, "");
		goto out;
	}
	if (p->token_file)
		from = buf_str(&text);
	n = from ? strcspn(from, " \t\r\n") : 0;
	if (n == 0)
		print_failure("no token: set OUTPOST_TOKEN, or give --token-file FILE", "");
	else if (from[n + strspn(from + n, "\r\n")] || n > TOKEN_MAX_BYTES)
		print_failure("the token must be one word on one line", "");
	else
		header = xasprintf("Authorization: Bearer %.*s", (int)n, from);
out:
	if (text.data)
		explicit_bzero(text.data, text.len);
	buf_release(&text);
	return header;
}

/* Sends the report, and prints the answer. */
static int put_report(
    const struct ctl *ctl, const struct push *p, const struct report_input *in, const char *url, const char *header)
{
	const char *type =
	    in->format == REPORT_JUNIT ? "Content-Type: application/xml" : "Content-Type: application/json";
	const char *const headers[] = {header, type, NULL};
	char *target = xasprintf("%s/api/v1/jobs/%lld/report", url, (long long)p->job);
	struct http_call call = {
	    .method = "PUT",
	    .url = target,
	    .headers = headers,
	    .body = buf_str(&in->text),
	    .body_bytes = in->text.len,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .total_timeout_ms = PUSH_TIMEOUT_MS,
	};
	int exit_code = EXIT_FAILED;
	json_t *v = NULL;

	if (http_call_blocking(&call, "outpostctl", NULL)) {
		print_failure("", call.why.text);
	} else if (json_parse(buf_str(&call.answer), call.answer.len, &v, NULL) || call.status != 200) {
		const char *detail = json_get_str(v, "detail");

		fprintf(stderr, "outpostctl: job %lld: %s (HTTP %d)%s\n", (long long)p->job,
		    detail ? detail : "the service refused the report", call.status,
		    call.status == 503 || call.status == 429 ? "; try again later" : "");
	} else if (ctl->is_json) {
		exit_code = server_print_json(json_incref(v));
	} else {
		int64_t n_cut = json_get_int(v, "cut", 0);

		printf("job %lld: %lld tests", (long long)p->job, (long long)json_get_int(v, "tests", 0));
		if (n_cut)
			printf(", %lld cut", (long long)n_cut);
		puts("");
		exit_code = EXIT_DONE;
	}
	json_decref(v);
	http_call_release(&call);
	free(target);
	return exit_code;
}

int cmd_report_push(const struct ctl *ctl)
{
	struct report_input in;
	char *url = NULL, *header = NULL;
	int exit_code = EXIT_FAILED;
	struct push p = {.url = NULL};
	const struct argument_option options[] = {{.name = "--job", .number = &p.job, .min = 1},
	    {.name = "--url", .text = &p.url}, {.name = "--token-file", .text = &p.token_file}, {.name = NULL}};

	if (!arguments_read(ctl, options, &p.path, 1, 1))
		return EXIT_USAGE;
	if (!p.job)
		return command_usage(ctl);
	if (!p.url)
		p.url = getenv("OUTPOST_URL");
	int rc = report_input_read(&in, p.path, N_REPORT_FORMATS);
	if (rc)
		print_failure(in.why.text, "");
	else
		url = find_service_url(ctl, &p);
	if (url)
		header = make_authorization(&p);
	if (header) {
		exit_code = put_report(ctl, &p, &in, url, header);
		explicit_bzero(header, strlen(header));
	}
	FREE_ALL(header, url);
	report_input_release(&in);
	return exit_code;
}
