/* Patterns find report files without leaving the work folder, and a job without its promised report is never a
 * success. */
#include "steps_rig.h"

#include "steps/report_pickup.h"

#define MINUTE_MS (60 * 1000)
#define CASE(name, inner)                                                                                              \
	"<testsuite name=\"unit\"><testcase classname=\"unit\" name=\"" name "\" time=\"0.5\">" inner                  \
	"</testcase></testsuite>"
#define PUT(file, text) "mkdir -p $(dirname " file "); cat > " file " <<'EOF'\n" text "\nEOF\n"

static json_t *report(void)
{
	const char *text = rig_read("report.json");
	struct error e = {0};
	json_t *v = NULL;

	if (json_parse(text, strlen(text), &v, &e))
		fail_msg("%s", e.text);
	return v;
}

static void test_merged(void **state)
{
	json_t *v;

	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_globs[1] = (char *)"more/**/*.xml";
	rig_step("test",
	    PUT("results/a.xml", CASE("one", "")) PUT("more/x/y/b.xml", CASE("two", ""))
		PUT("more/c.xml", CASE("three", "")) PUT("other/d.xml", CASE("four", "")),
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_true(rig_result.has_report);
	v = report();
	assert_int_equal(json_array_size(json_object_get(v, "tests")), 3);
	json_decref(v);
	rig_assert_log_has("== report: more/x/y/b.xml\n");
}

static void test_missing(void **state)
{
	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("test", "echo fine", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "no report: nothing matches results/*.xml");
	assert_false(rig_result.has_report);
	assert_false(rig_has("report.json"));
}

static void test_failed_step_keeps_its_conclusion_and_its_report(void **state)
{
	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("test", PUT("results/a.xml", CASE("one", "<failure message='no'/>")) "exit 3", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("failure", "step test: exit 3");
	assert_true(rig_result.has_report);
}

static void test_missing_after_a_failed_step(void **state)
{
	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("test", "exit 3", MINUTE_MS);
	rig_run();
	/* B7: a broken build ends so too, so it stays a failure, and says both */
	rig_assert_conclusion(
	    "failure", "step test: exit 3; no report: nothing matches results/*.xml in the job's work folder");
	rig_assert_log_has("== no report: nothing matches results/*.xml in the job's work folder\n");
}

static bool run_until_written(int64_t ms)
{
	rig_step("test", PUT("results/a.xml", CASE("one", "")) ": > written; exec sleep 1000", ms);
	rig_run();
	return rig_has("work/written");
}

static void test_after_a_timeout(void **state)
{
	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_run_longer(300, run_until_written);
	rig_assert_conclusion("timed_out", "step test");
	assert_true(rig_result.has_report);
}

static void test_one_wrong_file(void **state)
{
	json_t *v;

	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("test", PUT("results/a.xml", CASE("one", "")) PUT("results/b.xml", "<testsuite><oops"), MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "report: results/b.xml: ");
	assert_true(rig_result.has_report);
	v = report();
	assert_int_equal(json_array_size(json_object_get(v, "tests")), 1);
	json_decref(v);
}

static void test_links_lead_nowhere(void **state)
{
	char *outside = xasprintf("%s/outside", rig_dir), *file = xasprintf("%s/a.xml", outside);

	(void)state;
	assert_int_equal(mkdir(outside, 0700), 0);
	rig_write(file, CASE("stolen", ""));
	rig_globs[0] = (char *)"results/*.xml";
	rig_globs[1] = (char *)"*/a.xml";
	rig_environment[1] = (struct runner_variable){(char *)"OUTSIDE", outside};
	rig_config.n_environment = 2;
	rig_step("test",
	    "ln -s $OUTSIDE/a.xml results/link.xml; ln -s $OUTSIDE folder; mkfifo results/f.xml; "
	    "mkdir results/d.xml; ln -s . results/loop",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "no report: nothing matches results/*.xml, */a.xml");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(outside), 0);
	free(file);
	free(outside);
}

static void test_secrets_are_masked(void **state)
{
	const char *text;

	(void)state;
	rig_secrets[0] = (struct runner_secret){(char *)"KEY", secret_of("hunter22")};
	rig_config.n_secrets = 1;
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("test",
	    PUT("results/a.xml", "<testsuite name=\"s\"><testcase name=\"one\" file=\"tests/hunter22/t.py\" line=\"3\">"
				 "<failure message=\"KEY=hunter22\">hunter22</failure></testcase></testsuite>"),
	    MINUTE_MS);
	rig_run();
	assert_true(rig_result.has_report);
	text = rig_read("report.json");
	assert_null(strstr(text, "hunter22"));
	assert_non_null(strstr(text, "KEY=***"));
	assert_non_null(strstr(text, "tests/***/t.py"));
}

/* JSON escapes the quotation mark of this secret. */
static void test_secrets_in_the_environment_are_masked(void **state)
{
	const char *text;

	(void)state;
	rig_secrets[0] = (struct runner_secret){(char *)"KEY", secret_of("hun\"ter22")};
	rig_config.n_secrets = 1;
	rig_globs[0] = (char *)"results/*.json";
	rig_config.report_format = (char *)"outpost";
	rig_step("test",
	    "cat > results/a.json <<'END'\n"
	    "{\"schema\": 1, \"environment\": {\"device\": \"a hun\\\"ter22 b\", \"extension\": {\"name\": "
	    "\"hun\\\"ter22\"}},"
	    " \"tests\": [{\"suite\": \"s\", \"name\": \"n\", \"status\": \"PASS\"}]}\nEND",
	    MINUTE_MS);
	rig_run();
	assert_true(rig_result.has_report);
	text = rig_read("report.json");
	assert_null(strstr(text, "ter22"));
	assert_non_null(strstr(text, "a *** b"));
}

#define LARGE "for i in 0 1 2 3 4 5 6 7 8 9; do head -c 31000000 /dev/zero > results/$i.xml; done"

/* The cost of reading untrusted files is bounded. */
static void test_too_large_files_in_all_are_refused(void **state)
{
	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("large", LARGE, RIG_WAIT_MS);
	rig_run();
	rig_assert_conclusion("action_required", "report: results/0.xml");
	rig_assert_log_has("\n== report: results/7.xml");
	rig_assert_log_has("more than 256 MiB in all files together");
	rig_assert_log_lacks("report: results/8.xml");
}

static void cancel_while_it_reads(void)
{
	bool is_reading = false;
	pid_t pid;

	rig_config.n_steps = 0;
	rig_step("large", LARGE, RIG_WAIT_MS);
	pid = rig_start();
	while (!is_reading) {
		char *log = NULL;
		size_t n;

		poll(NULL, 0, 1);
		if (!job_folder_read(rig_folder, "log", 1 << 20, &log, &n, NULL))
			is_reading = strstr(log, "== report: ") != NULL;
		free(log);
	}
	kill(pid, SIGTERM);
	rig_finish(pid);
}

static void test_cancelled_meanwhile(void **state)
{
	(void)state;
	rig_globs[0] = (char *)"results/*.xml";
	cancel_while_it_reads();
	/* again if a busy machine sent the signal only after the report was read */
	for (int i = 0; i < 5 && !str_eq(rig_result.conclusion, "cancelled"); i++) {
		rig_next_job();
		cancel_while_it_reads();
	}
	rig_assert_conclusion("cancelled", "while the report was read");
	assert_false(rig_result.has_report);
}

static void put(const char *folder, const char *path)
{
	char *full = xasprintf("%s/%s", folder, path);

	for (char *p = full + strlen(folder) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	rig_write(full, "");
	free(full);
}

static void check_find(const char *pattern, const char *const *expected)
{
	char *patterns[] = {(char *)pattern, (char *)pattern, NULL};
	struct found_files found;

	report_find(rig_folder, patterns, &found);
	if (found.n != strv_len(expected))
		fail_msg("%s: %zu files", pattern, found.n);
	for (size_t i = 0; i < found.n; i++)
		assert_string_equal(found.list[i].path, expected[i]);
	found_files_release(&found);
}

#define FILES(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void test_patterns(void **state)
{
	(void)state;
	put(rig_folder, "a.xml");
	put(rig_folder, "b/c.xml");
	put(rig_folder, "b/d/e.xml");
	put(rig_folder, "b/.hidden.xml");
	put(rig_folder, "b/x1.json");
	check_find("a.xml", FILES("a.xml"));
	check_find("./a.xml", FILES("a.xml"));
	check_find("*.xml", FILES("a.xml"));
	check_find("b/*", FILES("b/c.xml", "b/x1.json"));
	check_find("b/.*.xml", FILES("b/.hidden.xml"));
	check_find("*/?[0-9].json", FILES("b/x1.json"));
	check_find("**/*.xml", FILES("a.xml", "b/c.xml", "b/d/e.xml"));
	check_find("**", FILES("a.xml", "b/c.xml", "b/d/e.xml", "b/x1.json"));
	check_find("b/**/e.xml", FILES("b/d/e.xml"));
	check_find("../*/a.xml", FILES());
	check_find("b/../a.xml", FILES());
	check_find("", FILES());
	check_find("/a.xml", FILES("a.xml"));
	check_find("none/*.xml", FILES());
}

static void test_many_files(void **state)
{
	char *patterns[] = {(char *)"**/*.xml", NULL};
	struct found_files found;

	(void)state;
	for (int i = 0; i < REPORT_FILES_MAX + 5; i++) {
		char *path = xasprintf("%s/%04d.xml", rig_folder, i);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		close(fd);
		free(path);
	}
	report_find(rig_folder, patterns, &found);
	assert_int_equal(found.n, REPORT_FILES_MAX);
	assert_true(found.is_cut);
	found_files_release(&found);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_merged), TEST(test_missing),
	    TEST(test_failed_step_keeps_its_conclusion_and_its_report), TEST(test_missing_after_a_failed_step),
	    TEST(test_after_a_timeout), TEST(test_one_wrong_file), TEST(test_links_lead_nowhere),
	    TEST(test_secrets_are_masked), TEST(test_secrets_in_the_environment_are_masked),
	    TEST(test_too_large_files_in_all_are_refused), TEST(test_cancelled_meanwhile), TEST(test_patterns),
	    TEST(test_many_files)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
