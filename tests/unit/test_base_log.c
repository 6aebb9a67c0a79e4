/* A log entry is one line for any input, in both formats. */
#include <setjmp.h>

#include <cmocka.h>

static int kept_stderr = -1;
static FILE *catcher;

static int setup(void **state)
{
	(void)state;
	catcher = tmpfile();
	kept_stderr = dup(STDERR_FILENO);
	return catcher && dup2(fileno(catcher), STDERR_FILENO) >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	dup2(kept_stderr, STDERR_FILENO);
	close(kept_stderr);
	fclose(catcher);
	log_setup(LOG_INFO, LOG_TEXT);
	return 0;
}

/* The output since the last call. free(). */
static char *written(void)
{
	char *text = xcalloc(1, 65536);
	ssize_t n = pread(fileno(catcher), text, 65535, 0);

	assert_true(n >= 0);
	assert_int_equal(ftruncate(fileno(catcher), 0), 0);
	assert_int_equal(lseek(fileno(catcher), 0, SEEK_SET), 0);
	return text;
}

static void test_text(void **state)
{
	char *line;

	(void)state;
	log_setup(LOG_INFO, LOG_TEXT);
	log_event(LOG_WARN, "ev_name", LOG_S("word", "plain-1.2"), LOG_I("n", -5),
	    LOG_S("quoted", "a b=\"c\"\\\nlevel=error"), LOG_S("empty", ""), LOG_S("none", (const char *)NULL),
	    LOG_S("bad", "\xff\x1b[0m"), LOG_S("utf8", "ä"));
	line = written();
	assert_int_equal(strncmp(line, "time=20", 7), 0);
	assert_string_equal(line + strlen("time=2026-11-20T12:00:00.000Z"),
	    " level=warn ev=ev_name word=plain-1.2 n=-5 quoted=\"a b=\\\"c\\\"\\\\\\nlevel=error\" "
	    "empty=\"\" none=\"\" bad=\"\\xff\\x1b[0m\" utf8=\"ä\"\n");
	free(line);
}

/* The output is aligned, omits empty values, and still contains no control characters. */
static void test_terminal_format(void **state)
{
	char *line;

	(void)state;
	setenv("TZ", "UTC", 1);
	log_setup(LOG_DEBUG, LOG_PEOPLE);
	log_event(LOG_INFO, "job_started", LOG_S("empty", ""), LOG_S("pr", "7"), LOG_I("n", 5));
	log_event(LOG_ERROR, "no_room", LOG_S("why", "a\x1b[31m\nb"));
	line = written();
	assert_string_equal(line + strlen("12:00:00"), strchr(line, ' '));
	assert_memory_equal(strchr(line, ' '), "  \u00b7 job_started        pr=7 n=5\n",
	    strlen("  \u00b7 job_started        pr=7 n=5\n"));
	assert_non_null(strstr(line, "  \u2717 no_room            why=\"a\\x1b[31m\\nb\"\n"));
	assert_null(strchr(line, '\x1b'));
	free(line);
	log_setup(LOG_DEBUG, LOG_PEOPLE_COLOUR);
	log_event(LOG_WARN, "ev", LOG_S("a", "b"));
	line = written();
	assert_non_null(strstr(line, "\x1b[33m! ev                \x1b[0m\x1b[2m a=\x1b[0mb\n"));
	free(line);
	unsetenv("TZ");
}

static void test_terminal_format_is_chosen_for_terminals(void **state)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), other;

	(void)state;
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	assert_int_equal(log_format_on_terminal(LOG_TEXT), LOG_TEXT); /* a file */
	assert_true(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
	other = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(other >= 0 && dup2(other, STDERR_FILENO) >= 0);
	assert_int_equal(log_format_on_terminal(LOG_TEXT), LOG_PEOPLE_COLOUR);
	assert_int_equal(log_format_on_terminal(LOG_JSON), LOG_JSON);
	setenv("NO_COLOR", "1", 1);
	assert_int_equal(log_format_on_terminal(LOG_TEXT), LOG_PEOPLE);
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_int_equal(log_format_on_terminal(LOG_TEXT), LOG_PEOPLE);
	close(other);
	close(terminal);
}

static void test_json(void **state)
{
	struct error e = {0};
	char *line;
	json_t *v;

	(void)state;
	log_setup(LOG_INFO, LOG_JSON);
	log_event(LOG_ERROR, "ev_name", LOG_S("text", "a \"b\"\n\\\x01\xff"), LOG_I("n", INT64_MAX));
	line = written();
	if (json_parse(line, strlen(line), &v, &e))
		fail_msg("%s: %s", e.text, line);
	assert_string_equal(json_get_str(v, "level"), "error");
	assert_string_equal(json_get_str(v, "ev"), "ev_name");
	assert_int_equal(json_get_int(v, "n", 0), INT64_MAX);
	assert_int_equal(strchr(line, '\n')[1], '\0');
	json_decref(v);
	free(line);
}

static void test_long_values_are_cut(void **state)
{
	char *text = xcalloc(1, 100001), *line;

	(void)state;
	log_setup(LOG_INFO, LOG_TEXT);
	memset(text, 'x', 100000);
	log_event(LOG_INFO, "ev", LOG_S("long", text), LOG_I("after", 1));
	line = written();
	assert_true(strlen(line) < 1200);
	assert_non_null(strstr(line, " after=1\n"));
	free(line);
	free(text);
}

/* A log entry of any length is one line, which ends, and which is valid JSON in that format. */
static void test_a_long_line_ends(void **state)
{
	char text[1025], *line;
	json_t *v;

	(void)state;
	memset(text, 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_setup(LOG_INFO, LOG_JSON);
	log_event(LOG_INFO, "ev", LOG_S("a", text), LOG_S("b", text), LOG_S("c", text), LOG_I("after", 1));
	line = written();
	if (json_parse(line, strlen(line), &v, NULL))
		fail_msg("%s", line);
	assert_int_equal(strlen(json_get_str(v, "b")), 1024);
	assert_null(json_get_str(v, "c"));
	assert_int_equal(json_get_int(v, "after", 0), 1);
	assert_int_equal(line[strlen(line) - 1], '\n');
	json_decref(v);
	free(line);
}

/* U+009B starts a sequence for a terminal as ESC [ does. */
static void test_control_characters_are_escaped(void **state)
{
	char *line;

	(void)state;
	log_setup(LOG_INFO, LOG_TEXT);
	log_event(LOG_INFO, "ev",
	    LOG_S("text", "a\xc2\x9b"
			  "2J\xc2\x80\xc2\xa0\xc3\xa9"));
	line = written();
	assert_non_null(strstr(line, " text=\"a\\x9b2J\\x80\xc2\xa0\xc3\xa9\"\n"));
	free(line);
	log_setup(LOG_INFO, LOG_JSON);
	log_event(LOG_INFO, "ev",
	    LOG_S("text", "a\xc2\x9b"
			  "2J"));
	line = written();
	assert_non_null(strstr(line, "\"text\":\"a\\u009b2J\"}\n"));
	free(line);
}

static void test_levels(void **state)
{
	char *line;

	(void)state;
	log_setup(LOG_WARN, LOG_TEXT);
	assert_false(log_is_on(LOG_INFO));
	assert_true(log_is_on(LOG_WARN));
	log_event(LOG_INFO, "silent");
	line = written();
	assert_string_equal(line, "");
	free(line);
}

static int count_lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void test_held_lines_are_written_together(void **state)
{
	char *text;

	(void)state;
	log_setup(LOG_INFO, LOG_TEXT);
	log_hold();
	log_event(LOG_INFO, "first");
	text = written();
	assert_string_equal(text, "");
	free(text);
	log_event(LOG_WARN, "urgent");
	text = written();
	assert_non_null(strstr(text, "ev=first\n"));
	assert_true(strstr(text, "ev=first") < strstr(text, "ev=urgent"));
	free(text);
	for (int i = 0; i < 500; i++)
		log_event(LOG_INFO, "many", LOG_I("i", i));
	log_release();
	text = written();
	assert_int_equal(count_lines(text), 500);
	assert_non_null(strstr(text, "ev=many i=499\n"));
	free(text);
	log_event(LOG_INFO, "after");
	text = written();
	assert_int_equal(count_lines(text), 1);
	free(text);
}

static void test_limit(void **state)
{
	struct log_limit l = {0};
	int64_t n_skipped;

	(void)state;
	assert_true(log_limit_pass(&l, 5000, &n_skipped));
	assert_int_equal(n_skipped, 0);
	assert_false(log_limit_pass(&l, 5500, &n_skipped));
	assert_false(log_limit_pass(&l, 5999, &n_skipped));
	assert_true(log_limit_pass(&l, 6000, &n_skipped));
	assert_int_equal(n_skipped, 2);
	assert_true(log_limit_pass(&l, 7000, &n_skipped));
	assert_int_equal(n_skipped, 0);
}

/* One line comes each second for two minutes, and another one after a quiet time. */
static void test_limit_of_long_trouble(void **state)
{
	static const int64_t passed_s[] = {0, 1, 3, 7, 15, 31, 63, 127};
	struct log_limit l = {.longest_ms = 60 * 1000};
	int64_t n_skipped;
	size_t n = 0;

	(void)state;
	for (int64_t s = 0; s <= 127; s++)
		if (log_limit_pass(&l, 5000 + s * 1000, &n_skipped))
			assert_int_equal(s, passed_s[n++]);
	assert_int_equal(n, ARRAY_LEN(passed_s));
	assert_true(log_limit_pass(&l, 500000, &n_skipped));
	assert_true(log_limit_pass(&l, 501000, &n_skipped));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    T(test_text),
	    T(test_json),
	    T(test_terminal_format),
	    T(test_terminal_format_is_chosen_for_terminals),
	    T(test_long_values_are_cut),
	    T(test_a_long_line_ends),
	    T(test_control_characters_are_escaped),
	    T(test_levels),
	    T(test_held_lines_are_written_together),
	    T(test_limit),
	    T(test_limit_of_long_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
