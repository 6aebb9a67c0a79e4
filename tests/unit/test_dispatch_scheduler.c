/* Periodic runs from the store to the request: lookups of heads that succeed, fail and hang, a registry that changes
 * meanwhile, and a dispatcher that is closed at any moment. */
#include "dispatch_rig.h"

#include "store/registry.h"
#include "store/schedules.h"

#define SOURCE "source: {git_url: \"https://example.org/%s.git\", branch: main}\n"

/* ---- the vendors' repositories ---- */

static struct {
	struct loop *loop;
	bool is_silent;
	int err; /* of the next ones */
	int n_asked, n_cancelled;
	struct head_request *waiting;
} heads;

static void answer_head(void *p)
{
	struct head_request *q = p;

	q->done(q);
}

static void ask_head(void *owner, struct head_request *q)
{
	(void)owner;
	heads.n_asked++;
	q->err = heads.err;
	/* The last byte identifies the repository. */
	snprintf(q->sha, sizeof(q->sha), "%039d%c", 0, strstr(q->git_url, "picky") ? 'b' : 'a');
	if (heads.is_silent)
		heads.waiting = q;
	else
		loop_reap(heads.loop, answer_head, q);
}

static void cancel_head(void *owner, struct head_request *q)
{
	(void)owner;
	if (q != heads.waiting) /* it is answered already */
		return;
	heads.waiting = NULL;
	heads.n_cancelled++;
	q->err = ERR_CANCELLED;
	loop_reap(heads.loop, answer_head, q);
}

/* ---- up, down and on ---- */

static void write_accelerator(const char *name)
{
	char *text = xasprintf("runners: [{name: ci, github: {repository: vendor/ci}}]\n" SOURCE, name);

	rig_write_accelerator(name, text);
	free(text);
}

static int set_up(void **state)
{
	struct rig *r;
	int rc = rig_set_up(state);

	r = *state;
	memset(&heads, 0, sizeof(heads));
	heads.loop = r->gh->loop;
	r->heads = (struct head_reader){ask_head, cancel_head, NULL};
	write_accelerator("gh");
	write_accelerator("picky");
	return rc;
}

static void start(struct rig *r)
{
	rig_start_store(r);
	rig_start_dispatch(r);
}

static void ask_run(struct rig *r, const char *accelerator)
{
	struct ask_schedule_run ask = {
	    .op.done = rig_op_on_done, .accelerator = accelerator, .now_ms = clock_wall_ms()};

	rig_op_is_done = false;
	assert_int_equal(store_ask_schedule_run(r->store, &ask), 0);
	loop_run_until(r->gh->loop, &rig_op_is_done);
	assert_int_equal(ask.op.err, 0);
}

static bool has_asked(struct rig *r)
{
	(void)r;
	return heads.n_asked > 0;
}

static bool has_failed(struct rig *r) { return rig_counters(r).n_nightlies_failed == 1; }

static bool has_dispatched(struct rig *r) { return rig_counters(r).n_nightlies_dispatched == 1; }

static bool waits(struct rig *r) { return rig_counters(r).n_head_failures == 1; }

/* The newest dispatch's block for vendors, if it lists this number of accelerators. Under the lock. */
static json_t *block_of(struct rig *r, size_t n_accelerators)
{
	size_t n = json_array_size(r->dispatches);
	json_t *one = n ? json_array_get(r->dispatches, n - 1) : NULL;
	json_t *block = json_at(one, "client_payload", "outpost", NULL);

	return json_array_size(json_object_get(block, "accelerators")) == n_accelerators ? block : NULL;
}

static bool lists(struct rig *r, size_t n_accelerators)
{
	bool is_there;

	pthread_mutex_lock(&r->gh->lock);
	is_there = block_of(r, n_accelerators) != NULL;
	pthread_mutex_unlock(&r->gh->lock);
	return is_there;
}

static bool lists_one(struct rig *r) { return lists(r, 1); }

static bool lists_two(struct rig *r) { return lists(r, 2); }

static const char *source_sha(json_t *block, const char *accelerator)
{
	return json_get_str(json_at(block, "sources", accelerator, NULL), "sha");
}

/* ---- the tests ---- */

/* The later request replaces the earlier one and names both accelerators. */
static void two_accelerators_of_one_repository_have_their_own_sources(void **state)
{
	struct rig *r = *state;
	json_t *block;

	start(r);
	ask_run(r, "gh");
	rig_wait_until(r, lists_one);
	ask_run(r, "picky");
	rig_wait_until(r, lists_two);
	pthread_mutex_lock(&r->gh->lock);
	block = json_deep_copy(block_of(r, 2));
	pthread_mutex_unlock(&r->gh->lock);
	assert_string_equal(source_sha(block, "gh"), "000000000000000000000000000000000000000a");
	assert_string_equal(source_sha(block, "picky"), "000000000000000000000000000000000000000b");
	json_decref(block);
	assert_int_equal(rig_counters(r).n_nightlies_dispatched, 2);
	assert_int_equal(rig_counters(r).n_upstream_heads_asked, 2);
}

static void mirror(struct rig *r)
{
	struct mirror_registry m = {.op.done = rig_op_on_done,
	    .list = r->config->accelerators,
	    .n = r->config->n_accelerators,
	    .now_ms = clock_wall_ms()};

	rig_op_is_done = false;
	assert_int_equal(store_mirror_registry(r->store, &m), 0);
	loop_run_until(r->gh->loop, &rig_op_is_done);
	assert_int_equal(m.op.err, 0);
}

/* "STATE REASON" of gh's newest run; free(). */
static char *newest_run(struct rig *r)
{
	struct list_schedules q = {.q.done = rig_query_on_done, .accelerator = "gh"};
	char *text;

	rig_query_is_done = false;
	assert_int_equal(store_list_schedules(r->store, &q), 0);
	loop_run_until(r->gh->loop, &rig_query_is_done);
	assert_int_equal(q.n, 1);
	text = xasprintf("%s %s", q.list[0].state, q.list[0].reason ? q.list[0].reason : "-");
	list_schedules_release(&q);
	return text;
}

static bool runs_as(struct rig *r, const char *expected)
{
	char *text = newest_run(r);
	bool is_so = strcmp(text, expected) == 0;

	free(text);
	return is_so;
}

static bool shows_error(struct rig *r)
{
	return runs_as(r, "reading the head of its source could not be read: network failure");
}

static bool shows_no_error(struct rig *r) { return runs_as(r, "dispatched -"); }

static void a_failed_lookup_is_retried_and_shows_its_error(void **state)
{
	struct rig *r = *state;

	start(r);
	mirror(r);
	heads.err = ERR_NETWORK;
	ask_run(r, "gh");
	rig_wait_until(r, waits);
	rig_wait_until(r, shows_error);
	heads.err = 0;
	rig_wait_until(r, lists_one);
	rig_wait_until(r, shows_no_error);
	assert_true(heads.n_asked >= 2); /* a second attempt may fail before the error disappears */
}

static void an_accelerator_that_left_meanwhile_gets_no_run(void **state)
{
	struct rig *r = *state;
	struct config *smaller;

	start(r);
	heads.err = ERR_NETWORK;
	ask_run(r, "gh");
	rig_wait_until(r, waits);
	assert_int_equal(unlink("accelerators.d/gh.yml"), 0);
	smaller = folder_load();
	dispatch_configure(r->dispatch, smaller);
	config_unref(r->config);
	r->config = smaller;
	rig_wait_until(r, has_failed);
	assert_int_equal(rig_n_dispatches(r), 0);
}

/* A running dispatch ends with the configuration with which it began. */
static void a_reload_leaves_the_current_run_unchanged(void **state)
{
	struct rig *r = *state;
	struct config *smaller;

	start(r);
	heads.is_silent = true;
	ask_run(r, "gh");
	rig_wait_until(r, has_asked);
	assert_int_equal(unlink("accelerators.d/gh.yml"), 0);
	smaller = folder_load();
	dispatch_configure(r->dispatch, smaller);
	config_unref(r->config);
	r->config = smaller;
	answer_head(heads.waiting);
	rig_wait_until(r, has_dispatched);
	assert_int_equal(heads.n_asked, 1);
}

static void closing_cancels_the_lookup(void **state)
{
	struct rig *r = *state;

	start(r);
	heads.is_silent = true;
	ask_run(r, "gh");
	rig_wait_until(r, has_asked);
	rig_stop(r);
	assert_int_equal(heads.n_cancelled, 1);
	heads.is_silent = false;
	start(r);
	rig_wait_until(r, lists_one);
	assert_int_equal(heads.n_asked, 2);
}

/* The next dispatcher continues at any point of progress, and GitHub gets one dispatch. */
static void a_run_continues_after_a_close_at_any_moment(void **state)
{
	struct rig *r = *state;
	json_t *all, *one;
	char *id = NULL;
	size_t i;

	start(r);
	ask_run(r, "gh");
	for (int ms = 0; ms < 12; ms++) {
		if (ms)
			rig_run_ms(r, ms);
		rig_stop(r);
		start(r);
	}
	rig_wait_until(r, lists_one);
	pthread_mutex_lock(&r->gh->lock);
	all = json_deep_copy(r->dispatches);
	pthread_mutex_unlock(&r->gh->lock);
	json_array_foreach(all, i, one)
	{
		const char *its = json_get_str(json_at(one, "client_payload", "outpost", NULL), "dispatch_id");

		if (!id)
			id = xstrdup(its);
		assert_string_equal(its, id);
	}
	json_decref(all);
	free(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rig_tear_down)
	    TEST(two_accelerators_of_one_repository_have_their_own_sources),
	    TEST(a_failed_lookup_is_retried_and_shows_its_error),
	    TEST(an_accelerator_that_left_meanwhile_gets_no_run),
	    TEST(a_reload_leaves_the_current_run_unchanged),
	    TEST(closing_cancels_the_lookup),
	    TEST(a_run_continues_after_a_close_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
