/* Tests the agent with every answer of a server. This program is also the job's process. */
#include "agent_rig.h"

#define REPORT                                                                                                         \
	"echo '<testsuite name=\"s\"><testcase name=\"a\"/></testsuite>' > "                                           \
	"$OUTPOST_RESULTS/r.xml"

static void assert_progress(struct fake *f, const char *sub, enum progress expected)
{
	char *folder = fake_job(f, sub);

	assert_int_equal(journal_progress(folder), expected);
	free(folder);
}

static void assert_end(const struct fake *f, const char *key, const char *expected)
{
	char *text = fake_end_field(f, key);

	assert_non_null(text);
	if (!strstr(text, expected))
		fail_msg("%s is \"%s\", without \"%s\"", key, text, expected);
	free(text);
}

static void assert_log_is_the_file(struct fake *f)
{
	struct error e = {0};
	char *folder = fake_job(f, ""), *text = NULL;
	size_t n;

	assert_int_equal(job_folder_read(folder, "log", 64 << 20, &text, &n, &e), 0);
	assert_int_equal(n, f->log.len);
	assert_memory_equal(text, f->log.data, n);
	assert_true(f->is_log_whole);
	free(text);
	free(folder);
}

static void log_report_and_end_are_sent_in_this_order(void **state)
{
	struct fake f = {0};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "echo hello; " REPORT), 0);
	fake_stop(&f);
	assert_non_null(strstr(buf_str(&f.log), "hello"));
	assert_log_is_the_file(&f);
	assert_non_null(strstr(f.report, "PASS"));
	assert_non_null(strstr(buf_str(&f.order), "lpe"));
	assert_end(&f, "conclusion", "success");
	assert_end(&f, "name", "farm");
	assert_end(&f, "job_name", "tests");
	assert_end(&f, "run_id", "d1");
	assert_progress(&f, "", PROGRESS_SENT);
	fake_release(&f);
}

static bool fail_once(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	static const char *const bodies[] = {"", "<html>", "{}", "[", "{\"detail\": \"x\"}"};

	(void)f;
	if (kind == ASK_RENEW || n > 0)
		return false;
	if (kind == ASK_CLAIM || kind == ASK_END) /* a portal that answers in place of the server */
		http_respond(r, 200, "text/html", NULL, bodies[1], strlen(bodies[1]));
	else
		http_respond(r, kind == ASK_LOG ? 503 : 500, "text/html", NULL, bodies[kind], strlen(bodies[kind]));
	return true;
}

static void each_failed_request_is_retried(void **state)
{
	struct fake f = {.on = fail_once};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "echo hello; " REPORT), 0);
	fake_stop(&f);
	assert_log_is_the_file(&f);
	assert_non_null(f.report);
	assert_int_equal(f.n[ASK_CLAIM], 2);
	assert_int_equal(f.n[ASK_REPORT], 2);
	assert_int_equal(f.n[ASK_END], 2);
	fake_release(&f);
}

/* The server has fewer bytes than it answered before: the first answer was about another file. */
static bool lose_some(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	if (kind != ASK_LOG || n != 1)
		return false;
	f->log.len = 3;
	fake_json(r, 409, "{\"detail\": \"gap\", \"bytes\": 3}");
	return true;
}

static void a_gap_is_filled(void **state)
{
	struct fake f = {.on = lose_some};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "echo one; sleep 0.5; echo two; " REPORT), 0);
	fake_stop(&f);
	assert_log_is_the_file(&f);
	fake_release(&f);
}

static bool log_is_complete(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	(void)n;
	(void)f;
	if (kind != ASK_LOG)
		return false;
	fake_json(r, 409, "{\"detail\": \"the log is complete\", \"bytes\": 0}");
	return true;
}

static void a_complete_log_is_not_sent_again(void **state)
{
	struct fake f = {.on = log_is_complete};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, REPORT), 0);
	fake_stop(&f);
	assert_int_equal(f.n[ASK_LOG], 1);
	fake_release(&f);
}

static bool refuse_end(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	(void)n;
	(void)f;
	if (kind == ASK_END)
		fake_json(r, 404, "{\"detail\": \"no such dispatch\"}");
	else if (kind == ASK_LOG)
		fake_json(r, 404, "{\"detail\": \"no such job\"}");
	return kind == ASK_END || kind == ASK_LOG;
}

static void a_job_that_the_server_rejects_is_put_aside(void **state)
{
	struct fake f = {.on = refuse_end};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, REPORT), 1);
	fake_stop(&f);
	assert_int_equal(f.n[ASK_END], 1);
	assert_int_equal(f.n[ASK_LOG], 1);
	assert_progress(&f, "/rejected", PROGRESS_REJECTED);
	fake_release(&f);
}

static bool refuse_report(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	(void)n;
	(void)f;
	if (kind == ASK_REPORT)
		fake_json(r, 400, "{\"detail\": \"tests[0].name is missing\"}");
	return kind == ASK_REPORT;
}

static void a_refused_report_is_never_green(void **state)
{
	struct fake f = {.on = refuse_report};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, REPORT), 0);
	fake_stop(&f);
	assert_end(&f, "conclusion", "action_required");
	assert_end(&f, "message", "the report was refused: 400: tests[0].name is missing");
	fake_release(&f);
}

static bool say_cancelled(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	(void)f;
	if (kind == ASK_RENEW && n == 0)
		fake_json(r, 200, "{\"lease\": \"cancelled\", \"reason\": \"superseded\"}");
	return kind == ASK_RENEW && n == 0;
}

static void a_cancel_stops_the_steps_and_is_reported(void **state)
{
	struct fake f = {.on = say_cancelled};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "sleep 600"), 0);
	fake_stop(&f);
	assert_int_equal(f.n[ASK_RENEW], 1);
	assert_end(&f, "conclusion", "cancelled");
	assert_progress(&f, "", PROGRESS_SENT);
	fake_release(&f);
}

static bool say_lost(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	(void)f;
	if (kind == ASK_RENEW && n == 0)
		fake_json(r, 200, "{\"lease\": \"lost\", \"reason\": \"it ran out\"}");
	return kind == ASK_RENEW && n == 0;
}

static void a_lost_lease_stops_the_steps_and_sends_nothing(void **state)
{
	struct fake f = {.on = say_lost};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "sleep 600"), 1);
	fake_stop(&f);
	assert_null(f.end);
	assert_progress(&f, "", PROGRESS_LOST);
	fake_release(&f);
}

static void a_silent_accelerator_sends_only_the_end(void **state)
{
	struct fake f = {.job_id = "null"};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, REPORT), 0);
	fake_stop(&f);
	assert_null(strpbrk(buf_str(&f.order), "lp"));
	assert_end(&f, "conclusion", "success");
	fake_release(&f);
}

/* The steps kill the job's process. */
static void a_job_that_died_is_neither_reported_nor_run_again(void **state)
{
	struct fake f = {0};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "echo so far; sleep 0.5; kill -9 $(cat ../lock); sleep 600"), 1);
	fake_stop(&f);
	assert_null(f.end);
	assert_log_is_the_file(&f);
	assert_non_null(strstr(buf_str(&f.log), "so far"));
	assert_progress(&f, "", PROGRESS_DIED);
	fake_release(&f);
}

static bool refuse_token_once(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	bool is_new = str_eq(http_header(r, "Authorization"), "Bearer rotated");

	(void)n;
	if (kind == ASK_CLAIM && !is_new) {
		fake_write(f, "token", "rotated\n");
		fake_json(r, 401, "{\"detail\": \"the token was revoked\"}");
		return true;
	}
	return false;
}

static void the_agent_reads_a_refused_token_again(void **state)
{
	struct fake f = {.on = refuse_token_once};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, REPORT), 0);
	fake_stop(&f);
	assert_int_equal(f.n[ASK_CLAIM], 2);
	fake_release(&f);
}

static bool no_work_twice(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	(void)f;
	if (kind != ASK_CLAIM || n > 1)
		return false;
	http_respond(r, 204, "text/plain", NULL, "", 0);
	return true;
}

/* Standard error while the agent runs. */
static char *log_of_a_run(struct fake *f)
{
	struct buf text = BUF_INIT(64 * 1024);
	struct error e = {0};
	char *path = path_join(f->dir, "agent.log");
	int kept = dup(STDERR_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(kept >= 0 && fd >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(fake_run(f, REPORT), 0);
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	close(kept);
	close(fd);
	assert_int_equal(file_read(path, &text, &e), 0);
	free(path);
	return buf_detach(&text);
}

/* A machine whose labels match no work looks idle: the log names the work that it waits for. */
static void a_machine_without_work_logs_it_once(void **state)
{
	struct fake f = {.on = no_work_twice, .level = "info"};
	char *log, *at;

	(void)state;
	fake_open(&f);
	log = log_of_a_run(&f);
	fake_stop(&f);
	at = strstr(log, "ev=waiting ");
	assert_non_null(at);
	assert_non_null(strstr(at, "accelerator=npu"));
	assert_null(strstr(at + 1, "ev=waiting "));
	free(log);
	fake_release(&f);
}

/* The 404 comes from a proxy in front of the server, not from the server. */
static bool answer_for_the_server(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	static const char page[] = "<html>404 Not Found</html>";

	(void)f;
	if (kind == ASK_RENEW || n > 0)
		return false;
	http_respond(r, 404, "text/html", NULL, page, strlen(page));
	return true;
}

static void a_404_from_a_proxy_is_retried(void **state)
{
	struct fake f = {.on = answer_for_the_server};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "echo hello; " REPORT), 0);
	fake_stop(&f);
	assert_log_is_the_file(&f);
	assert_non_null(f.report);
	assert_int_equal(f.n[ASK_END], 2);
	assert_progress(&f, "", PROGRESS_SENT);
	fake_release(&f);
}

/* A step that finds the token cannot show it in the log. */
static void the_token_is_not_shown(void **state)
{
	struct fake f = {0};

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run(&f, "echo see $(cat ../../../../token); " REPORT), 0);
	fake_stop(&f);
	assert_non_null(strstr(buf_str(&f.log), "see ***"));
	assert_null(strstr(buf_str(&f.log), "secret-token"));
	fake_release(&f);
}

/* While the file `fixed` is missing, the end request fails; afterwards there is no more work. In both cases the
 * agent is stopped after it has sent the end. */
static bool stop_at_the_end(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	char *path = path_join(f->dir, "fixed");
	bool is_fixed = access(path, F_OK) == 0;

	(void)n;
	free(path);
	if (kind == ASK_CLAIM && is_fixed) {
		http_respond(r, 204, "text/plain", NULL, "", 0);
		return true;
	}
	if (kind != ASK_END)
		return false;
	if (!is_fixed)
		http_respond(r, 500, "text/plain", NULL, "", 0);
	kill(getpid(), SIGTERM);
	return !is_fixed;
}

static void the_next_agent_sends_unsent_files(void **state)
{
	struct fake f = {.on = stop_at_the_end};
	struct buf runs = BUF_INIT(64);
	struct error e = {0};
	char *path;

	(void)state;
	fake_open(&f);
	assert_int_equal(fake_run_until(&f, "echo run >> ../../../../runs; " REPORT, AGENT_UNTIL_STOPPED), 0);
	assert_progress(&f, "", PROGRESS_NONE);
	fake_write(&f, "fixed", "");
	assert_int_equal(fake_run_until(&f, "echo another step", AGENT_UNTIL_STOPPED), 0);
	fake_stop(&f);
	assert_log_is_the_file(&f);
	assert_end(&f, "conclusion", "success");
	assert_progress(&f, "", PROGRESS_SENT);
	path = path_join(f.dir, "runs");
	assert_int_equal(file_read(path, &runs, &e), 0);
	assert_string_equal(buf_str(&runs), "run\n");
	free(path);
	buf_release(&runs);
	fake_release(&f);
}

/* A portal answers the first heartbeat instead of the server. Then the lease is lost, and the agent is stopped. */
static bool answer_nonsense_first(struct fake *f, enum ask kind, int n, struct http_request *r)
{
	if (kind == ASK_RENEW && n == 0)
		http_respond(r, 200, "text/html", NULL, "<html>", 6);
	else if (kind == ASK_RENEW)
		fake_json(r, 200, "{\"lease\": \"lost\", \"reason\": \"it ran out\"}");
	else if (kind == ASK_CLAIM)
		http_respond(r, 204, "text/plain", NULL, "", 0);
	if (kind == ASK_CLAIM && f->n[ASK_RENEW] > 1)
		kill(getpid(), SIGTERM);
	return kind == ASK_RENEW || kind == ASK_CLAIM;
}

/* The agent died after it was granted the job and before it started it. Only a readable answer may start it. */
static void a_waiting_job_does_not_start_by_an_unreadable_answer(void **state)
{
	struct fake f = {.on = answer_nonsense_first};
	struct lease_offer offer;
	struct journal journal;
	struct error e = {0};

	(void)state;
	fake_open(&f);
	char *lease = fake_lease(&f), *work_dir = path_join(f.dir, "work"), *runs = path_join(f.dir, "runs"), *folder;
	assert_int_equal(lease_offer_parse(lease, strlen(lease), &offer, &e), 0);
	assert_int_equal(mkdir(work_dir, 0700), 0);
	assert_int_equal(journal_open(&journal, work_dir, &e), 0);
	assert_int_equal(journal_add(&journal, &offer, &folder, &e), 0);
	journal_close(&journal);
	assert_int_equal(fake_run_until(&f, "echo run >> ../../../../runs", AGENT_UNTIL_STOPPED), 0);
	fake_stop(&f);
	assert_int_equal(f.n[ASK_RENEW], 2);
	assert_int_equal(access(runs, F_OK), -1);
	assert_null(f.end);
	lease_offer_release(&offer);
	free(lease);
	free(work_dir);
	free(runs);
	free(folder);
	fake_release(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(log_report_and_end_are_sent_in_this_order),
	    cmocka_unit_test(each_failed_request_is_retried),
	    cmocka_unit_test(a_gap_is_filled),
	    cmocka_unit_test(a_complete_log_is_not_sent_again),
	    cmocka_unit_test(a_job_that_the_server_rejects_is_put_aside),
	    cmocka_unit_test(a_refused_report_is_never_green),
	    cmocka_unit_test(a_cancel_stops_the_steps_and_is_reported),
	    cmocka_unit_test(a_lost_lease_stops_the_steps_and_sends_nothing),
	    cmocka_unit_test(a_silent_accelerator_sends_only_the_end),
	    cmocka_unit_test(a_job_that_died_is_neither_reported_nor_run_again),
	    cmocka_unit_test(the_agent_reads_a_refused_token_again),
	    cmocka_unit_test(a_machine_without_work_logs_it_once),
	    cmocka_unit_test(a_404_from_a_proxy_is_retried),
	    cmocka_unit_test(the_token_is_not_shown),
	    cmocka_unit_test(the_next_agent_sends_unsent_files),
	    cmocka_unit_test(a_waiting_job_does_not_start_by_an_unreadable_answer),
	};

	if (argc == 5 && str_eq(argv[3], "--job"))
		return job_process_main(argv[2], argv[4]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
