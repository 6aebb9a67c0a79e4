/* The registry's mirror in the database: the settings that experiments read. */
#include "store_rig.h"

#include "db/db.h"

static char *no_names[] = {NULL};

static void mirror(enum reruns reruns, const struct experiment_budget *budget)
{
	struct runner runners[] = {
	    {.name = (char *)"ci", .kind = RUNNER_GITHUB, .repository = (char *)"Ascend/pytorch", .reruns = reruns},
	    {.name = (char *)"farm", .kind = RUNNER_PULL, .labels = no_names},
	};
	struct accelerator npu = {.name = (char *)"npu",
	    .title = (char *)"NPU",
	    .oncall = no_names,
	    .runners = runners,
	    .n_runners = 2,
	    .experiments = *budget,
	    .must_pass = no_names,
	    .skip = no_names};
	struct mirror_registry m = {.list = &npu, .n = 1, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
}

/* The first column of the first row, as text. free(). */
static char *ask(const char *sql)
{
	char *path = rig_path(), *text;
	struct db *d;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	text = db_text_values(db_view(d), sql, VALUES());
	if (!text)
		fail_msg("%s: %s", sql, db_why(d)->text);
	db_close(d);
	free(path);
	return text;
}

static void assert_mirrored(const char *expected)
{
	char *text = ask("SELECT (SELECT group_concat(name || '=' || reruns, ' ') FROM"
			 " (SELECT * FROM runner ORDER BY name) listed) || ' ' || experiment_tests || ' '"
			 " || experiment_per_head || ' ' || experiment_share FROM accelerator");

	assert_string_equal(text, expected);
	free(text);
}

static void reruns_and_budget_follow_the_configuration(void **state)
{
	(void)state;
	mirror(RERUNS_NONE, &(struct experiment_budget){50, 2, 100});
	assert_mirrored("ci=none farm=none 50 2 100");
	mirror(RERUNS_TESTS, &(struct experiment_budget){7, 1, 25});
	assert_mirrored("ci=tests farm=none 7 1 25");
	mirror(RERUNS_WHOLE, &(struct experiment_budget){500, 20, 1000});
	assert_mirrored("ci=whole farm=none 500 20 1000");
	mirror(RERUNS_NONE, &(struct experiment_budget){50, 2, 0});
	assert_mirrored("ci=none farm=none 50 2 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(reruns_and_budget_follow_the_configuration, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
