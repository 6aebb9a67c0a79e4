/* The agent's files: the lock, the list of jobs, and which folders are removed. */
#include <setjmp.h>

#include <cmocka.h>

#include <glob.h>
#include <sys/resource.h>

#include "agent/journal.h"
#include "steps/job_folder.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/outpost-journal-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct error e = {0};

	(void)state;
	return job_folder_remove(dir, &e);
}

static struct journal opened(void)
{
	struct journal j;
	struct error e = {0};

	if (journal_open(&j, dir, &e))
		fail_msg("%s", e.text);
	return j;
}

static struct lease_offer offer(const char *lease_id)
{
	char *text = xasprintf("{\"lease_id\": \"%s\", \"lease_ms\": 60000, \"attempt\": 1, \"job_id\": 42, "
			       "\"dispatch_id\": \"d1\", \"accelerator\": \"npu\", \"runner\": \"farm\", \"run_id\": "
			       "\"d1\", \"visibility\": \"public\", \"change\": {\"kind\": \"push\", \"repository\": "
			       "\"pytorch/pytorch\", \"head_sha\": \"0123456789012345678901234567890123456789\", "
			       "\"event_type\": \"push\"}}",
	    lease_id);
	struct lease_offer o;

	assert_int_equal(lease_offer_parse(text, strlen(text), &o, NULL), 0);
	free(text);
	return o;
}

static char *add(struct journal *j, const char *lease_id)
{
	struct lease_offer o = offer(lease_id);
	struct error e = {0};
	char *folder;

	if (journal_add(j, &o, &folder, &e))
		fail_msg("%s", e.text);
	lease_offer_release(&o);
	return folder;
}

static size_t n_listed(const struct journal *j)
{
	char **names;
	size_t n;

	assert_int_equal(journal_list(j->jobs_dir, &names, NULL), 0);
	n = strv_len((const char *const *)names);
	strv_free(names);
	return n;
}

static void the_second_agent_is_refused(void **state)
{
	struct journal one = opened(), two;
	struct error e = {0};
	char *who = xasprintf("(process %d)", (int)getpid());

	(void)state;
	assert_int_equal(journal_open(&two, dir, &e), ERR_BUSY);
	assert_non_null(strstr(e.text, "in use by another outpost-runner"));
	assert_non_null(strstr(e.text, who));
	free(who);
	journal_close(&one);
	one = opened();
	journal_close(&one);
}

/* The largest list of tests that an experiment may have; each of its bytes may need two in JSON. */
static void the_largest_experiment_is_read_back(void **state)
{
	struct journal j = opened();
	struct lease_offer o = offer("lease1"), back;
	struct experiment_request *x = xcalloc(1, sizeof(*x));
	struct error e = {0};
	char *folder;

	(void)state;
	*x = (struct experiment_request){.id = 1,
	    .of = xstrdup("d0"),
	    .sha = xstrdup(o.head_sha),
	    .tests = xcalloc(EXPERIMENT_TESTS_MAX + 1, sizeof(char *)),
	    .jobs = strv_copy(NULL)};
	for (size_t i = 0; i < EXPERIMENT_TESTS_MAX; i++) {
		x->tests[i] = xmalloc(EXPERIMENT_TEST_MAX_BYTES + 1);
		memset(x->tests[i], '"', EXPERIMENT_TEST_MAX_BYTES);
		x->tests[i][EXPERIMENT_TEST_MAX_BYTES] = '\0';
	}
	o.kind = CHANGE_EXPERIMENT;
	o.experiment = x;
	assert_int_equal(journal_add(&j, &o, &folder, &e), 0);
	if (journal_read_offer(folder, &back, &e))
		fail_msg("%s", e.text);
	assert_int_equal(strv_len((const char *const *)back.experiment->tests), EXPERIMENT_TESTS_MAX);
	assert_string_equal(back.experiment->tests[EXPERIMENT_TESTS_MAX - 1], x->tests[0]);
	lease_offer_release(&back);
	lease_offer_release(&o);
	free(folder);
	journal_close(&j);
}

static void a_claim_keeps_its_id_until_it_ends(void **state)
{
	struct journal j = opened();
	char *first, *again, *next;

	(void)state;
	assert_int_equal(journal_claim_id(&j, &first, NULL), 0);
	assert_int_equal(journal_claim_id(&j, &again, NULL), 0);
	assert_string_equal(first, again);
	journal_claim_over(&j);
	assert_int_equal(journal_claim_id(&j, &next, NULL), 0);
	assert_string_not_equal(first, next);
	free(first);
	free(again);
	free(next);
	journal_close(&j);
}

static void a_damaged_claim_file_starts_a_new_claim(void **state)
{
	struct journal j = opened();
	struct error e = {0};
	char *id;

	(void)state;
	assert_int_equal(job_folder_write(dir, "claim", "../../x", 7, &e), 0);
	assert_int_equal(journal_claim_id(&j, &id, NULL), 0);
	assert_int_equal(strlen(id), 26);
	assert_null(strchr(id, '/'));
	free(id);
	journal_close(&j);
}

static void a_lease_has_one_folder(void **state)
{
	struct journal j = opened();
	struct lease_offer o = offer("lease-1"), read;
	char *folder = add(&j, "lease-1"), *again;

	(void)state;
	assert_int_equal(journal_add(&j, &o, &again, NULL), ERR_EXISTS);
	assert_null(again);
	assert_int_equal(n_listed(&j), 1);
	assert_int_equal(journal_read_offer(folder, &read, NULL), 0);
	assert_string_equal(read.lease_id, "lease-1");
	lease_offer_release(&read);
	lease_offer_release(&o);
	free(folder);
	journal_close(&j);
}

static void progress_is_the_last_one_written(void **state)
{
	struct journal j = opened();
	char *folder = add(&j, "a");
	struct error e = {0};

	(void)state;
	assert_int_equal(journal_progress(folder), PROGRESS_NONE);
	for (int p = PROGRESS_RETURNING; p < N_PROGRESS; p++) {
		assert_int_equal(journal_set_progress(folder, (enum progress)p, "a \"reason\"\n", &e), 0);
		assert_int_equal(journal_progress(folder), p);
	}
	assert_int_equal(job_folder_write(folder, "progress", "{", 1, &e), 0);
	assert_int_equal(journal_progress(folder), PROGRESS_NONE);
	free(folder);
	journal_close(&j);
}

static void a_rejected_job_is_moved_out_of_the_list(void **state)
{
	struct journal j = opened();
	char *folder = add(&j, "a");
	char *to = xasprintf("%s/jobs/rejected/%s", dir, strrchr(folder, '/') + 1);
	struct error e = {0};

	(void)state;
	assert_int_equal(journal_reject(&j, folder, "404: no such dispatch", &e), 0);
	assert_int_equal(n_listed(&j), 0);
	assert_int_equal(journal_progress(to), PROGRESS_REJECTED);
	free(to);
	free(folder);
	journal_close(&j);
}

static void pruning_removes_finished_jobs_only(void **state)
{
	static const enum progress how[] = {PROGRESS_SENT, PROGRESS_NONE, PROGRESS_LOST, PROGRESS_RETURNING,
	    PROGRESS_SENT, PROGRESS_DIED, PROGRESS_SENT};
	struct journal j = opened();
	struct error e = {0};
	char *folders[ARRAY_LEN(how)];
	int lock;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		char id[8];

		snprintf(id, sizeof(id), "l%zu", i);
		folders[i] = add(&j, id);
		if (how[i] != PROGRESS_NONE)
			assert_int_equal(journal_set_progress(folders[i], how[i], "", &e), 0);
	}
	/* the process of the third still exists, although its parent does not wait for it */
	assert_int_equal(job_lock_acquire(folders[2], &lock, &e), 0);
	journal_prune(j.jobs_dir, 2);
	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		bool is_there = access(folders[i], F_OK) == 0;

		assert_int_equal(is_there, i != 0 && i != 4);
		free(folders[i]);
	}
	assert_int_equal(n_listed(&j), ARRAY_LEN(how) - 2);
	close(lock);
	journal_prune(j.jobs_dir, 0);
	assert_int_equal(n_listed(&j), 2);
	journal_close(&j);
}

/* A hundred folders with a checkout each would fill the disk. */
static void pruning_keeps_the_log_of_a_rejected_job(void **state)
{
	struct journal j = opened();
	struct error e = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		char id[16], *folder, *work;

		snprintf(id, sizeof(id), "l%d", i);
		folder = add(&j, id);
		work = path_join(folder, "work");
		assert_int_equal(mkdir(work, 0700), 0);
		assert_int_equal(job_folder_write(work, "large", "x", 1, &e), 0);
		assert_int_equal(job_folder_write(folder, "log", "x", 1, &e), 0);
		assert_int_equal(journal_reject(&j, folder, "no such job", &e), 0);
		free(work);
		free(folder);
	}
	journal_prune(j.jobs_dir, 1);
	for (int i = 0; i < 3; i++) {
		char *pattern = xasprintf("%s/rejected/*-l%d/{log,work/large}", j.jobs_dir, i);
		glob_t found;

		assert_int_equal(glob(pattern, GLOB_BRACE, NULL, &found), 0);
		assert_int_equal(found.gl_pathc, i == 2 ? 2 : 1);
		globfree(&found);
		free(pattern);
	}
	journal_close(&j);
}

/* Without a free descriptor the agent cannot see the lock, and must not take a running job for dead. */
static void a_lock_that_cannot_be_read_counts_as_held(void **state)
{
	struct journal j = opened();
	struct error e = {0};
	char *folder = add(&j, "a");
	struct rlimit limit, none;
	int lock;

	(void)state;
	assert_false(job_folder_is_locked(folder));
	assert_int_equal(job_lock_acquire(folder, &lock, &e), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool is_locked = job_folder_is_locked(folder);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(is_locked);
	close(lock);
	free(folder);
	journal_close(&j);
}

static void a_full_disk_leaves_no_partial_files(void **state)
{
	struct journal j = opened();
	struct lease_offer o = offer("a");
	struct error e = {0};
	char *folder, *rejected = xasprintf("%s/rejected", j.jobs_dir);

	(void)state;
	assert_true(journal_room_bytes(&j) >= 0);
	/* simulates a full disk */
	assert_int_equal(rmdir(rejected), 0);
	assert_int_equal(rmdir(j.jobs_dir), 0);
	assert_int_not_equal(journal_add(&j, &o, &folder, &e), 0);
	assert_null(folder);
	assert_true(*e.text != '\0');
	free(rejected);
	lease_offer_release(&o);
	journal_close(&j);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(the_second_agent_is_refused),
	    TEST(the_largest_experiment_is_read_back),
	    TEST(a_claim_keeps_its_id_until_it_ends),
	    TEST(a_damaged_claim_file_starts_a_new_claim),
	    TEST(a_lease_has_one_folder),
	    TEST(progress_is_the_last_one_written),
	    TEST(a_rejected_job_is_moved_out_of_the_list),
	    TEST(pruning_removes_finished_jobs_only),
	    TEST(pruning_keeps_the_log_of_a_rejected_job),
	    TEST(a_lock_that_cannot_be_read_counts_as_held),
	    TEST(a_full_disk_leaves_no_partial_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
