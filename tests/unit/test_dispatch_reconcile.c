/* Lost webhooks: which are found, which are only noted, and that nothing is done twice. */
#include "dispatch_rig.h"
#include "store/branch_commits.h"

static int64_t n_looks, n_failures;

static bool has_looked(struct rig *r)
{
	struct dispatch_counters n = rig_counters(r);

	return n.last_reconcile_wall_ms > n_looks || n.n_reconcile_failures > n_failures;
}

/* Starts everything and waits for the first look. */
static void start(struct rig *r)
{
	n_looks = n_failures = 0;
	rig_start_store(r);
	rig_start_dispatch(r);
	rig_wait_until(r, has_looked);
}

static void look(struct rig *r)
{
	rig_run_ms(r, 2); /* the time of the last look is in milliseconds */
	n_looks = rig_counters(r).last_reconcile_wall_ms;
	n_failures = rig_counters(r).n_reconcile_failures;
	dispatch_reconcile_now(r->dispatch);
	rig_wait_until(r, has_looked);
}

static void set_text(struct rig *r, const char **field, const char *text)
{
	pthread_mutex_lock(&r->gh->lock);
	*field = text;
	pthread_mutex_unlock(&r->gh->lock);
}

/* "[PULL,PULL]"; free(). */
static char *list_of(const struct rig_pull *pulls, size_t n)
{
	struct buf b = BUF_INIT(1 << 16);

	buf_append_char(&b, '[');
	for (size_t i = 0; i < n; i++) {
		char *one = rig_pull_object(&pulls[i]);

		buf_appendf(&b, "%s%s", i ? "," : "", one);
		free(one);
	}
	buf_append_char(&b, ']');
	return buf_detach(&b);
}

static void notes_open_pulls_at_the_first_look_without_dispatching(void **state)
{
	struct rig *r = *state;
	const struct rig_pull before = {0};
	const struct rig_pull after = {.sha = SHA_B, .updated_at = "2026-01-01T00:05:00Z"};
	char *pulls = list_of(&before, 1), *later = list_of(&after, 1);

	set_text(r, &r->pulls, pulls);
	start(r);
	assert_int_equal(rig_counters(r).n_reconcile_failures, 0);
	look(r);
	rig_expect_states(r, "");
	assert_int_equal(rig_counters(r).n_reconciled, 0);

	set_text(r, &r->pulls, later);
	look(r);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_counters(r).n_reconciled, 1);
	look(r);
	/* The webhook arrives late, and twice. */
	rig_pull(r, "g-1", .action = "synchronize", .sha = SHA_B, .updated_at = "2026-01-01T00:05:00Z");
	look(r);
	rig_stop(r);
	start(r);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_n_dispatches(r), 1);
	assert_int_equal(rig_n_hooks(r), 1);
	free(pulls);
	free(later);
}

static void forwards_a_body_of_the_webhooks_shape(void **state)
{
	struct rig *r = *state;
	const struct rig_pull after = {.sha = SHA_B, .updated_at = "2026-01-01T00:05:00Z"};
	char *pulls = list_of(&after, 1);
	json_t *o;

	start(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	set_text(r, &r->pulls, pulls);
	look(r);
	rig_expect_states(r, "gh:sent gh:superseded hook:acknowledged hook:superseded picky:sent"
			     " picky:superseded");
	o = json_at(json_array_get(r->dispatches, 1), "client_payload", NULL);
	assert_int_equal(strlen(json_get_str(o, "delivery_id")), 36);
	o = json_object_get(o, "payload");
	assert_string_equal(json_get_str(o, "action"), "synchronize");
	assert_string_equal(json_get_str(o, "before"), SHA_A);
	assert_string_equal(json_get_str(o, "after"), SHA_B);
	assert_int_equal(json_get_int(o, "number", 0), 7);
	assert_string_equal(json_get_str(json_at(o, "pull_request", "head", NULL), "sha"), SHA_B);
	assert_string_equal(json_get_str(json_object_get(o, "repository"), "full_name"), UPSTREAM);
	free(pulls);
}

static void finds_opened_and_closed_pulls(void **state)
{
	struct rig *r = *state;
	const struct rig_pull both[] = {
	    {.number = 8, .sha = SHA_B, .updated_at = "2026-01-02T00:00:00Z"},
	    {.number = 7},
	};
	const struct rig_pull closed = {.state = "closed", .updated_at = "2026-01-03T00:00:00Z"};
	char *one = list_of(&both[1], 1), *two = list_of(both, 2), *other = list_of(both, 1);
	char *pull = rig_pull_object(&closed);

	set_text(r, &r->pulls, one);
	start(r);
	set_text(r, &r->pulls, two);
	look(r);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");

	/* PR 7 had no dispatch; give it one, and lose the notification of its end. */
	rig_pull(r, "g-1", .action = "reopened", .updated_at = "2026-01-02T00:00:00Z");
	rig_expect_states(r, "gh:sent gh:sent hook:acknowledged hook:acknowledged picky:sent picky:sent");
	set_text(r, &r->pulls, other);
	set_text(r, &r->pull, pull);
	rig_stop(r);
	start(r); /* which reads the list to its end */
	rig_expect_states(r, "gh:cancelled gh:sent hook:acknowledged hook:cancelled picky:cancelled picky:sent");
	assert_int_equal(rig_counters(r).n_reconciled, 1);
	free(one);
	free(two);
	free(other);
	free(pull);
}

static void keeps_newer_state_when_github_lists_an_older_one(void **state)
{
	struct rig *r = *state;
	const struct rig_pull stale = {.sha = SHA_A};
	char *pulls = list_of(&stale, 1);

	start(r);
	rig_pull(r, "g-1", .action = "opened", .sha = SHA_B, .updated_at = "2026-01-01T00:05:00Z");
	rig_pull(r, "g-2", .action = "closed", .sha = SHA_B, .state = "closed", .number = 9,
	    .updated_at = "2026-01-01T00:05:00Z");
	set_text(r, &r->pulls, pulls);
	look(r);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_counters(r).n_reconciled, 0);
	free(pulls);
}

static void finds_pushes(void **state)
{
	struct rig *r = *state;

	rig_write_accelerator("pathy", "runners: [{name: ci, github: {repository: other/pathy}}]\n"
				       "triggers: {push: true}\n");
	start(r);
	look(r);
	rig_expect_states(r, "");
	set_text(r, &r->branch_sha, SHA_TIP2);
	look(r);
	rig_expect_states(r, "pathy:sent");
	look(r);
	rig_stop(r);
	start(r);
	rig_deliver(r, "g-1", "push",
	    "{\"ref\":\"refs/heads/main\",\"before\":\"" SHA_TIP "\",\"after\":\"" SHA_TIP2 "\","
	    "\"deleted\":false,\"repository\":{\"full_name\":\"" UPSTREAM "\"}}");
	look(r);
	rig_expect_states(r, "pathy:sent");
	assert_int_equal(rig_n_dispatches(r), 1);
	assert_string_equal(
	    json_string_value(json_at(json_array_get(r->dispatches, 0), "client_payload", "payload", "before", NULL)),
	    SHA_TIP);
}

/* "sha sha?": the commits of main from `after` on; ? when there is a gap. */
static char *history(struct rig *r, const char *after, const char *until)
{
	struct list_commits l = {
	    .q.done = rig_query_on_done, .repository = UPSTREAM, .ref = "main", .after = after, .until = until};
	struct buf text = BUF_INIT(512);

	rig_query_is_done = false;
	assert_int_equal(store_list_commits(r->store, &l), 0);
	loop_run_until(r->gh->loop, &rig_query_is_done);
	assert_int_equal(l.q.err, 0);
	for (size_t i = 0; i < l.n; i++)
		buf_appendf(&text, "%s%.1s:%s:%s", i ? " " : "", l.list[i].sha,
		    l.list[i].author ? l.list[i].author : "", l.list[i].title ? l.list[i].title : "");
	buf_append_str(&text, l.is_complete ? "" : "?");
	list_commits_release(&l);
	return buf_detach(&text);
}

static void expect_history(struct rig *r, const char *after, const char *until, const char *expected)
{
	char *text = history(r, after, until);

	assert_string_equal(text, expected);
	free(text);
}

#define COMPARED(sha, by)                                                                                              \
	"{\"sha\":\"" sha "\",\"author\":" by ",\"commit\":{\"message\":\"Fix\\n\\nall\","                             \
	"\"author\":{\"name\":\"Dan\"},\"committer\":{\"date\":\"2026-01-01T00:00:00Z\"}}}"

/* A push that is found adds the commits in between if GitHub lists all of them. */
static void a_found_push_adds_the_commits_in_between(void **state)
{
	static const char *const answers[][2] = {
	    {"{\"status\":\"ahead\",\"total_commits\":2,\"commits\":[" COMPARED(SHA_B, "null") "," COMPARED(
		 SHA_TIP2, "{\"login\":\"dana\"}") "]}",
		"b:Dan:Fix d:dana:Fix"},
	    {"{\"status\":\"ahead\",\"total_commits\":3,\"commits\":[" COMPARED(SHA_B, "null") "," COMPARED(
		 SHA_TIP2, "null") "]}",
		"d:carol:Land it?"},
	    {"{\"status\":\"diverged\",\"total_commits\":1,\"commits\":[" COMPARED(SHA_TIP2, "null") "]}",
		"d:Dan:Fix?"},
	    {NULL, "d:carol:Land it?"},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		start(r);
		look(r);
		set_text(r, &r->branch_sha, SHA_TIP2);
		set_text(r, &r->comparison, answers[i][0]);
		look(r);
		expect_history(r, SHA_TIP, SHA_TIP2, answers[i][1]);
		rig_stop(r);
		rig_tear_down(state);
		rig_set_up(state);
		r = *state;
	}
}

/* ---- deliveries ---- */

static char *entry(int64_t id, const char *guid, int status, const char *at)
{
	return xasprintf("{\"id\":%lld,\"guid\":\"%s\",\"status_code\":%d,\"delivered_at\":"
			 "\"%s\",\"redelivery\":false}",
	    (long long)id, guid, status, at);
}

#define LATER "2099-01-01T00:00:00Z"

static void requests_redelivery_of_failed_deliveries(void **state)
{
	struct rig *r = *state;
	char *entries[] = {
	    entry(106, "healed", 202, LATER),
	    entry(105, "lost", 502, LATER),
	    entry(104, "here", 500, LATER),
	    entry(103, "fine", 200, LATER),
	    entry(102, "healed", 0, LATER),
	    entry(101, "not a guid", 500, LATER),
	    entry(100, "ancient", 500, "2020-01-01T00:00:00Z"),
	    entry(99, "before-that", 500, LATER),
	};
	struct buf list = BUF_INIT(1 << 16);

	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		buf_appendf(&list, "%c%s", i ? ',' : '[', entries[i]);
		free(entries[i]);
	}
	buf_append_char(&list, ']');
	rig_start_store(r);
	rig_pull(r, "here", .action = "opened");
	set_text(r, &r->deliveries, buf_str(&list));
	n_looks = n_failures = 0;
	rig_start_dispatch(r);
	rig_wait_until(r, has_looked);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/"), 1);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/105/attempts"), 1);
	look(r);
	rig_stop(r);
	start(r);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/"), 1);
	buf_release(&list);
}

/* Each failed redelivery has an id of its own. Others arrive meanwhile, so the next request waits for the back-off. */
static void backs_off_from_a_delivery_that_fails_for_good(void **state)
{
	struct rig *r = *state;

	start(r);
	for (int i = 1; i <= 9; i += 2) {
		char *lost = entry(i, "lost", 502, LATER), *other = entry(i + 1, "other", 202, LATER);
		char *list = xasprintf("[%s,%s]", other, lost);

		set_text(r, &r->deliveries, list);
		look(r);
		set_text(r, &r->deliveries, "[]");
		free(lost);
		free(other);
		free(list);
	}
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/"), 1);
	assert_int_equal(rig_counters(r).n_redeliveries_asked, 1);
}

/* Nothing arrives, redeliveries neither. So a look requests one delivery, and both when something has arrived. */
static void spares_deliveries_while_nothing_arrives(void **state)
{
	struct rig *r = *state;

	set_text(r, &r->deliveries,
	    "[{\"id\":4,\"guid\":\"b\",\"status_code\":502,\"redelivery\":true},"
	    "{\"id\":3,\"guid\":\"a\",\"status_code\":502,\"redelivery\":true}]");
	start(r);
	for (int i = 0; i < 5; i++)
		look(r);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/"), 1);
	set_text(r, &r->deliveries, "[{\"id\":5,\"guid\":\"c\",\"status_code\":200,\"redelivery\":false}]");
	look(r);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/"), 3);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/3/attempts"), 2);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/4/attempts"), 1);
	set_text(r, &r->deliveries, "[]");
}

static void retries_a_failed_look(void **state)
{
	struct rig *r = *state;
	char *one = entry(5, "lost", 502, LATER), *list = xasprintf("[%s]", one);

	start(r);
	set_text(r, &r->deliveries, list);
	set_text(r, &r->redelivery_status, "502 Bad");
	for (int i = 1; i <= 4; i++) { /* the attempts do not count */
		look(r);
		assert_int_equal(rig_counters(r).n_reconcile_failures, i);
	}
	set_text(r, &r->redelivery_status, "202 Accepted");
	look(r);
	assert_int_equal(rig_counters(r).n_reconcile_failures, 4);
	assert_int_equal(rig_counters(r).n_redeliveries_asked, 1);
	/* A redelivery that is too late for GitHub is not retried. */
	free(one);
	free(list);
	one = entry(6, "gone", 502, LATER);
	list = xasprintf("[%s]", one);
	set_text(r, &r->deliveries, list);
	set_text(r, &r->redelivery_status, "422 No");
	look(r);
	set_text(r, &r->redelivery_status, "202 Accepted");
	look(r);
	assert_int_equal(rig_counters(r).n_reconcile_failures, 4);
	assert_int_equal(rig_counters(r).n_redeliveries_asked, 1);
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/6/"), 1);
	set_text(r, &r->deliveries, "[]");
	free(one);
	free(list);
}

static void reload(struct timer *t)
{
	struct rig *r = timer_owner(t);

	dispatch_configure(r->dispatch, r->config);
	timer_start(t, 100);
}

/* This holds for any number of reloads. */
static void reloads_do_not_delay_the_next_look(void **state)
{
	struct rig *r = *state;
	struct timer *reloads = timer_new(r->gh->loop, reload, r);

	n_looks = n_failures = 0;
	rig_start_store(r);
	r->config->reconcile_interval_ms = 400;
	rig_start_dispatch(r);
	rig_wait_until(r, has_looked);
	rig_run_ms(r, 2); /* the time of the last look is in milliseconds */
	n_looks = rig_counters(r).last_reconcile_wall_ms;
	timer_start(reloads, 1);
	rig_wait_until(r, has_looked);
	timer_close(reloads);
}

static void tolerates_any_answer(void **state)
{
	struct rig *r = *state;

	set_text(r, &r->deliveries, "{\"message\":\"hello\"}");
	set_text(r, &r->pulls,
	    "[null,1,\"x\",{},{\"number\":1},{\"number\":3,\"head\":{\"sha\":7}},"
	    "{\"number\":2,\"head\":{\"sha\":\"zz\"},\"updated_at\":\"x\"}]");
	set_text(r, &r->branch_sha, "nonsense");
	start(r);
	look(r);
	set_text(r, &r->deliveries, "[null,{},{\"id\":\"x\",\"guid\":7},{\"id\":3,\"guid\":null}]");
	look(r);
	rig_expect_states(r, "");
	assert_int_equal(fake_count(r->gh, "POST /app/hook/deliveries/"), 0);
}

static void closes_while_it_looks(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 20; i++) {
		rig_start_store(r);
		rig_start_dispatch(r);
		rig_run_ms(r, i % 10);
		rig_stop(r);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(notes_open_pulls_at_the_first_look_without_dispatching),
	    TEST(forwards_a_body_of_the_webhooks_shape),
	    TEST(finds_opened_and_closed_pulls),
	    TEST(keeps_newer_state_when_github_lists_an_older_one),
	    TEST(finds_pushes),
	    TEST(a_found_push_adds_the_commits_in_between),
	    TEST(requests_redelivery_of_failed_deliveries),
	    TEST(backs_off_from_a_delivery_that_fails_for_good),
	    TEST(spares_deliveries_while_nothing_arrives),
	    TEST(retries_a_failed_look),
	    TEST(reloads_do_not_delay_the_next_look),
	    TEST(tolerates_any_answer),
	    TEST(closes_while_it_looks),
	};

	return cmocka_run_group_tests_name("dispatch_reconcile", tests, NULL, NULL);
}
