/* The comment command `stress`: how it finds the test, when it is refused, the runs that it plans, and its reply. */
#include "experiments_rig.h"

#include "store/commands.h"

#define BASE HEAD_C

static struct asked_command asked; /* the last one, with its result */
static int64_t comment_id;

static enum command_result say(
    enum speaker speaker, const char *test, const char *accelerator, int n_rounds, int64_t at)
{
	struct spoken_comment spoken = {.id = ++comment_id,
	    .created_ms = T0 + at,
	    .login = speaker == SPEAKER_MEMBER ? "mona" : "alice",
	    .words = "stress",
	    .speaker = speaker};
	struct run_commands op = {
	    .repository = UPSTREAM, .number = 1, .spoken = &spoken, .list = &asked, .n = 1, .now_ms = T0 + at};

	asked = (struct asked_command){.command.kind = COMMAND_STRESS, .result = COMMAND_DONE};
	asked.command.n_rounds = n_rounds;
	snprintf(asked.command.test, sizeof(asked.command.test), "%s", test);
	snprintf(asked.command.word, sizeof(asked.command.word), "%s", accelerator);
	DO_OK(store_run_commands, &op);
	return asked.result;
}

static enum command_result stress(const char *test, int64_t at) { return say(SPEAKER_MEMBER, test, "", 1, at); }

/* "eyes", "confused", …: of the last comment. free() */
static char *reaction(void)
{
	return db_text(look,
	    "SELECT json_extract(text, '$.content') FROM outbox WHERE kind = 'reaction'"
	    " AND CAST(json_extract(text, '$.comment') AS INTEGER) = ?1",
	    V_INT(comment_id));
}

static void assert_reaction(const char *expected)
{
	char *is = reaction();

	assert_string_equal(is, expected);
	free(is);
}

#define OF_STRESS                                                                                                      \
	"FROM experiment_test x JOIN experiment e ON e.id = x.experiment_id"                                           \
	" JOIN test t ON t.id = x.test_id WHERE e.cause = 'stress'"

static void a_member_has_a_test_run_many_times_on_both_sides(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "t2"), 0);
	base_is(HEAD_A, BASE);
	assert_int_equal(say(SPEAKER_MEMBER, "unit/t1", "npu", 2, MINUTE), COMMAND_DONE);
	assert_reaction("eyes");
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply'"), 0);
	ASSERT_TEXT("SELECT group_concat(side || round, ' ') FROM (SELECT side, round"
		    " FROM experiment WHERE cause = 'stress' ORDER BY id) listed",
	    "head1 base1 head2 base2");
	assert_int_equal(number("SELECT COUNT(DISTINCT test_id) " OF_STRESS), 1);
}

static void the_reply_is_sent_when_all_runs_have_ended(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	base_is(HEAD_A, BASE);
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_DONE);
	end_run(1, NAMES("t1"), NULL, 2 * MINUTE);
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply'"), 0);
	end_run(2, NULL, NAMES("t1"), 3 * MINUTE);
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply' AND instr(text, '"
				"\"accelerators\":[{\"accelerator\":\"npu\",\"head\":{\"sha\":\"" HEAD_A
				"\",\"passed\":0,\"failed\":1,\"lost\":0},\"base\":{\"sha\":\"" BASE
				"\",\"passed\":1,\"failed\":0,\"lost\":0}}]') > 0"),
	    1);
	assert_int_equal(number("SELECT number FROM outbox WHERE kind = 'reply'"), 1);
}

static void only_members_may_start_a_stress_run(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	assert_int_equal(say(SPEAKER_AUTHOR, "unit/t1", "", 1, MINUTE), COMMAND_FOR_MEMBERS);
	assert_reaction("confused");
	say(SPEAKER_STRANGER, "unit/t1", "", 1, MINUTE);
	assert_reaction("confused");
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 0);
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply'"), 0);
}

/* By the full name, or by the name alone if only one suite has it, with or without the dtype. */
static void a_test_is_named_as_the_comment_shows_it(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1", "llama3"), 0);
	change_sql("INSERT INTO test (suite, name, dtype) VALUES ('unit', 'llama3', 'bf16'),"
		   " ('unit', 'llama3', 'fp16'), ('perf', 't1', '')");
	change_sql("INSERT INTO verdict (change_id, accelerator, test_id, status, job_id, is_late)"
		   " SELECT v.change_id, 'npu', t.id, 'PASS', v.job_id, 0 FROM test t, verdict v"
		   " JOIN test o ON o.id = v.test_id AND o.name = 'llama3'"
		   " WHERE t.dtype <> '' OR t.suite = 'perf'");
	assert_int_equal(stress("llama3", MINUTE), COMMAND_DONE);
	assert_int_equal(number("SELECT COUNT(*) " OF_STRESS), 3);
	assert_int_equal(stress("unit/llama3 (bf16)", MINUTE), COMMAND_DONE);
	ASSERT_TEXT("SELECT t.dtype " OF_STRESS " ORDER BY x.experiment_id DESC", "bf16");
	change_sql("UPDATE experiment SET state = 'cancelled'"); /* two at a time */
	assert_int_equal(stress("t1", MINUTE), COMMAND_NO_TEST); /* two suites have it */
	assert_string_equal(asked.hint, "unit/t1");              /* the red one first */
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_DONE);
}

static void an_unknown_test_gets_one_reply(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("test_conv2d"), 0);
	assert_int_equal(stress("unit/test_conv3d", MINUTE), COMMAND_NO_TEST);
	assert_string_equal(asked.hint, "unit/test_conv2d");
	assert_reaction("confused");
	ASSERT_TEXT("SELECT json_extract(text, '$.commands[0].test') FROM outbox"
		    " WHERE kind = 'reply'",
	    "unit/test_conv3d");
	assert_int_equal(stress("'; DROP TABLE experiment; --", MINUTE), COMMAND_NO_TEST);
	assert_string_equal(asked.hint, "");
	assert_int_equal(say(SPEAKER_MEMBER, "unit/test_conv2d", "gpu", 1, MINUTE), COMMAND_NO_TEST);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 0);
}

static void the_reply_says_that_no_runner_takes_reruns(void **state)
{
	(void)state;
	reruns = RERUNS_NONE;
	mirror_npu(50, 2, 100, false);
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_NO_RERUNS);
	assert_reaction("confused");
	assert_int_equal(number("SELECT COUNT(*) FROM outbox WHERE kind = 'reply'"), 1);
}

/* Experiments never widen trust: a head that no member has released does not run. */
static void a_held_head_stays_held(void **state)
{
	(void)state;
	open_head(1, HEAD_A, "ci", "the author has not contributed before", 0);
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_STRESS_HELD);
	assert_reaction("confused");
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 0);
	assert_int_equal(number("SELECT COUNT(*) FROM dispatch WHERE state <> 'held'"), 0);
}

/* A newer head is held although the older one ran: it does not inherit the tests of the older one. */
static void a_newer_held_head_has_no_tests_yet(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	open_head(1, HEAD_B, "ci", "the author has not contributed before", MINUTE);
	assert_int_equal(stress("unit/t1", 2 * MINUTE), COMMAND_STRESS_HELD);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 0);
}

static void a_pull_request_has_two_stress_runs_at_a_time(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_DONE);
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_DONE);
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_STRESS_BUSY);
	assert_reaction("confused");
	end_run(1, NULL, NAMES("t1"), 2 * MINUTE);
	assert_int_equal(stress("unit/t1", 3 * MINUTE), COMMAND_DONE);
}

static void a_pull_request_has_ten_stress_runs_in_all(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	change_sql("INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause,"
		   " round, side, sha, state, command_id, created_ms, expires_ms)"
		   " WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10)"
		   " SELECT 900 + i, 'npu', 'ci', '', 'stress', 1, 'head', '', 'planned', 7000 + i,"
		   " 1, 9000000000000000 FROM n");
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_STRESS_BUSY);
	change_sql("DELETE FROM experiment WHERE command_id = 7010");
	assert_int_equal(stress("unit/t1", MINUTE), COMMAND_DONE);
}

static void a_closed_pull_request_runs_nothing(void **state)
{
	(void)state;
	a_red_head(1, HEAD_A, "ci", NAMES("t1"), 0);
	rig_close_pull(1, HEAD_A, 10);
	assert_int_equal(stress("unit/t1", 2 * MINUTE), COMMAND_CLOSED);
	assert_int_equal(number("SELECT COUNT(*) FROM experiment"), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, experiments_setup, experiments_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_member_has_a_test_run_many_times_on_both_sides),
	    TEST(the_reply_is_sent_when_all_runs_have_ended),
	    TEST(only_members_may_start_a_stress_run),
	    TEST(a_test_is_named_as_the_comment_shows_it),
	    TEST(an_unknown_test_gets_one_reply),
	    TEST(the_reply_says_that_no_runner_takes_reruns),
	    TEST(a_held_head_stays_held),
	    TEST(a_newer_held_head_has_no_tests_yet),
	    TEST(a_pull_request_has_two_stress_runs_at_a_time),
	    TEST(a_pull_request_has_ten_stress_runs_in_all),
	    TEST(a_closed_pull_request_runs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
