/* Outgoing requests: signed and addressed correctly, retried or given up. A vendor that hangs delays no other vendor. */
#include "dispatch_rig.h"

#include "model/client_payload.h"

static int n_expected;

static bool so_many_hooks(struct rig *r) { return rig_n_hooks(r) >= n_expected; }

static bool so_many_dispatches(struct rig *r) { return rig_n_dispatches(r) >= n_expected; }

static bool sends_nothing(struct rig *r) { return rig_counters(r).n_sending == 0; }

static bool is_dead(struct rig *r) { return rig_counters(r).n_dead == n_expected; }

static bool is_retried(struct rig *r) { return rig_counters(r).n_retries >= n_expected; }

static void start(struct rig *r)
{
	rig_start_store(r);
	rig_start_dispatch(r);
}

static json_t *body_of(const char *request)
{
	const char *body = strstr(request, "\r\n\r\n") + 4;
	json_t *o = NULL;

	assert_int_equal(json_parse(body, strlen(body), &o, NULL), 0);
	return o;
}

static const char *at(const json_t *o, const char *a, const char *b)
{
	const char *text = json_string_value(json_at(o, a, b, NULL));

	return text ? text : "";
}

static void expect_header(const char *request, const char *line)
{
	if (!strstr(request, line) || strstr(request, line) > strstr(request, "\r\n\r\n"))
		fail_msg("no %s in %s", line, request);
}

static void signs_webhooks(void **state)
{
	struct rig *r = *state;
	const char *request, *body, *id;
	uint8_t mac[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1], *line, *accelerator;
	json_t *o;

	start(r);
	rig_pull(r, "g-1", .action = "ready_for_review");
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	request = r->hooks[0];
	body = strstr(request, "\r\n\r\n") + 4;
	o = body_of(request);
	id = at(o, "outpost", "dispatch_id");

	assert_int_equal(strncmp(request, "POST /hook?token=hush HTTP/1.1\r\n", 32), 0);
	hmac_sha256("hook-secret", 11, body, strlen(body), mac);
	line = xasprintf("X-Hub-Signature-256: sha256=%s\r\n", hex_encode(mac, sizeof(mac), hex));
	expect_header(request, line);
	free(line);
	line = xasprintf("X-Outpost-Delivery: %s\r\n", id);
	expect_header(request, line);
	free(line);
	expect_header(request, "X-Outpost-Event: pull_request\r\n");
	expect_header(request, "Content-Type: application/json\r\n");
	expect_header(request, "User-Agent: outpost/test\r\n");

	assert_string_equal(json_get_str(o, "event_type"), "pull_request");
	assert_string_equal(json_get_str(o, "delivery_id"), "g-1");
	assert_string_equal(at(o, "payload", "action"), "synchronize");
	assert_string_equal(at(o, "outpost", "action"), "ready_for_review");
	assert_string_equal(at(o, "outpost", "change_url"), "https://outpost.example.org/pulls/7");
	line = xasprintf("https://outpost.example.org/api/v1/dispatches/%s/jobs", id);
	assert_string_equal(at(o, "outpost", "callback_url"), line);
	free(line);
	assert_int_equal(callback_token_check(the_rig->callback_key, at(o, "outpost", "callback_token"), id,
			     clock_wall_ms() + INT64_C(7) * 24 * 3600 * 1000, &accelerator),
	    0);
	assert_string_equal(accelerator, "hook");
	free(accelerator);
	json_decref(o);
}

static void lists_accelerators_for_github(void **state)
{
	struct rig *r = *state;
	json_t *o, *names;

	start(r);
	rig_pull(r, "g-1", .action = "opened", .association = "CONTRIBUTOR");
	rig_expect_states(r, "gh:sent hook:acknowledged picky:held");
	o = json_array_get(r->dispatches, 0);
	assert_string_equal(json_get_str(o, "repository"), "vendor/ci");
	assert_string_equal(json_get_str(o, "event_type"), "pull_request");
	assert_string_equal(at(o, "client_payload", "delivery_id"), "g-1");
	o = json_at(o, "client_payload", "outpost", NULL);
	assert_string_equal(json_get_str(o, "callback_url"), "https://outpost.example.org/github/callback");
	assert_null(json_object_get(o, "callback_token"));
	names = json_object_get(o, "accelerators");
	assert_int_equal(json_array_size(names), 1);
	assert_string_equal(json_string_value(json_array_get(names, 0)), "gh");
}

static void pushes_name_the_commit(void **state)
{
	struct rig *r = *state;
	json_t *o;

	rig_write_accelerator("pathy", "runners: [{name: ci, github: {repository: other/pathy}}]\n"
				       "triggers: {push: true}\n");
	start(r);
	rig_deliver(r, "g-1", "push",
	    "{\"ref\":\"refs/heads/main\",\"before\":\"" SHA_A "\",\"after\":\"" SHA_B "\","
	    "\"deleted\":false,\"repository\":{\"full_name\":\"" UPSTREAM "\"}}");
	rig_expect_states(r, "pathy:sent");
	o = json_at(json_array_get(r->dispatches, 0), "client_payload", NULL);
	assert_string_equal(json_get_str(o, "event_type"), "push");
	assert_null(json_at(o, "payload", "action", NULL));
	assert_string_equal(at(o, "outpost", "change_url"), "https://outpost.example.org/commits/" SHA_B);
}

static void retries_after_a_failure(void **state)
{
	struct rig *r = *state;
	json_t *first, *last;
	int64_t began = clock_mono_ms();

	r->hook_status = "503 Busy";
	r->hook_headers = "Retry-After: 1\r\n";
	r->dispatch_status = "502 Bad";
	r->n_dispatch_failures = -1;
	start(r);
	rig_pull(r, "g-1", .action = "opened");
	n_expected = 2;
	rig_wait_until(r, is_retried);
	rig_expect_states(r, "gh:queued hook:queued picky:queued");
	pthread_mutex_lock(&r->gh->lock);
	r->n_dispatch_failures = 0;
	pthread_mutex_unlock(&r->gh->lock);
	pthread_mutex_lock(&r->lock);
	r->hook_status = "202 Accepted";
	pthread_mutex_unlock(&r->lock);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_true(clock_mono_ms() - began >= 1000);
	/* a busy machine may retry before the servers are told to accept */
	assert_true(rig_n_hooks(r) >= 2);
	first = body_of(r->hooks[0]);
	last = body_of(r->hooks[rig_n_hooks(r) - 1]);
	assert_string_equal(at(first, "outpost", "dispatch_id"), at(last, "outpost", "dispatch_id"));
	json_decref(first);
	json_decref(last);
}

static void gives_up_on_a_final_answer(void **state)
{
	struct rig *r = *state;

	r->hook_status = "404 Not Found";
	r->dispatch_status = "422 No";
	r->n_dispatch_failures = -1;
	start(r);
	rig_pull(r, "g-1", .action = "opened");
	n_expected = 2;
	rig_wait_until(r, is_dead);
	rig_expect_states(r, "gh:failed hook:failed picky:failed");
	assert_int_equal(rig_counters(r).n_retries, 0);
}

static char *last_error(struct rig *r, const char *accelerator)
{
	struct list_dispatches q = {
	    .q.done = rig_query_on_done,
	    .repository = UPSTREAM,
	    .accelerator = accelerator,
	    .limit = 1,
	};
	char *error;

	rig_query_is_done = false;
	assert_int_equal(store_list_dispatches(r->store, &q), 0);
	loop_run_until(r->gh->loop, &rig_query_is_done);
	assert_int_equal(q.n, 1);
	error = xstrdup(q.list[0].last_error ? q.list[0].last_error : "");
	list_dispatches_release(&q);
	return error;
}

static void follows_no_redirect(void **state)
{
	struct rig *r = *state;
	char *error;

	r->hook_status = "302 Found";
	r->hook_headers = "Location: /elsewhere\r\n";
	start(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hook:failed picky:sent");
	assert_int_equal(rig_n_hooks(r), 1);
	error = last_error(r, "hook");
	assert_string_equal(error, "the vendor's server answered 302, and redirects are not followed");
	free(error);
}

/* The operator removes the network after the vendor's file was read. */
static void reaches_allowed_addresses_only(void **state)
{
	struct rig *r = *state;
	char *error;
	size_t n;

	rig_start_store(r);
	n = r->config->n_allow_networks;
	r->config->n_allow_networks = 0;
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	n_expected = 1;
	rig_wait_until(r, is_retried);
	assert_int_equal(rig_n_hooks(r), 0);
	assert_int_equal(atomic_load(&r->vendor->n_connections), 0);
	rig_expect_states(r, "gh:sent hook:queued picky:sent");
	error = last_error(r, "hook");
	for (int i = 0; i < 1000 && !*error; i++) { /* the count is ahead of the store */
		free(error);
		error = last_error(r, "hook");
	}
	/* Every visitor may read it, so it contains no address. */
	assert_string_equal(error, "its host's address may not be reached");
	free(error);
	r->config->n_allow_networks = n;
}

static void sends_nothing_to_an_accelerator_that_left(void **state)
{
	struct rig *r = *state;
	struct config *smaller;
	char *error;

	r->hook_status = "503 Busy";
	r->dispatch_status = "503 Busy";
	r->n_dispatch_failures = -1;
	start(r);
	rig_pull(r, "g-1", .action = "opened");
	n_expected = 2;
	rig_wait_until(r, is_retried);
	assert_int_equal(unlink("accelerators.d/hook.yml"), 0);
	assert_int_equal(unlink("accelerators.d/gh.yml"), 0);
	assert_int_equal(unlink("accelerators.d/picky.yml"), 0);
	smaller = folder_load();
	dispatch_configure(r->dispatch, smaller);
	config_unref(smaller);
	rig_wait_until(r, is_dead);
	rig_expect_states(r, "gh:failed hook:failed picky:failed");
	error = last_error(r, "hook");
	assert_string_equal(error, "no longer registered");
	free(error);
}

static void a_hanging_vendor_delays_no_other_vendor(void **state)
{
	struct rig *r = *state;
	struct loopback *other = loopback_start(rig_serve_vendor, r);
	char *text = xasprintf("runners: [{name: lab, webhook: {url: \"http://127.0.0.1:%d/other\","
			       " secret: hook}}]\n",
	    other->port);

	r->is_hanging = true;
	folder_write("secrets/other/hook", "x\n");
	rig_write_accelerator("other", text);
	free(text);
	start(r);
	for (int i = 1; i <= 30; i++) {
		char guid[16], sha[41];

		snprintf(guid, sizeof(guid), "g-%d", i);
		snprintf(sha, sizeof(sha), "%040x", i);
		rig_pull(r, guid, .action = "opened", .number = i, .sha = sha);
	}
	n_expected = 30;
	rig_wait_until(r, so_many_dispatches);
	n_expected = 8; /* four at each, which hang */
	rig_wait_until(r, so_many_hooks);
	assert_int_equal(rig_n_hooks(r), 8);
	assert_int_equal(atomic_load(&r->vendor->n_requests), 4);
	/* The other vendor answers again; the first does not, and still has only its four requests. */
	pthread_mutex_lock(&r->lock);
	r->is_hanging = false;
	pthread_mutex_unlock(&r->lock);
	loopback_stop(other); /* its four are cut off, and tried again */
	rig_stop(r);
	assert_int_equal(atomic_load(&r->vendor->n_requests), 4);
}

static void sends_interrupted_requests_again(void **state)
{
	struct rig *r = *state;
	json_t *first, *last;

	r->is_hanging = true;
	start(r);
	rig_pull(r, "g-1", .action = "opened");
	n_expected = 1;
	rig_wait_until(r, so_many_hooks);
	rig_expect_states(r, "gh:sent hook:queued picky:sent"); /* GitHub's request is not interrupted */
	rig_stop(r);
	r->is_hanging = false;
	start(r);
	rig_expect_states(r, "gh:sent hook:acknowledged picky:sent");
	assert_int_equal(rig_n_dispatches(r), 1);
	first = body_of(r->hooks[0]);
	last = body_of(r->hooks[1]);
	assert_string_equal(at(first, "outpost", "dispatch_id"), at(last, "outpost", "dispatch_id"));
	json_decref(first);
	json_decref(last);
}

static void reaches_a_hundred_targets(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 100; i++) {
		char name[16];
		char *text;

		snprintf(name, sizeof(name), "v%d", i);
		text = xasprintf("runners: [{name: ci, github: {repository: vendor/v%d}}, {name: lab,"
				 " webhook: {url: \"http://127.0.0.1:%d/%d\", secret: hook}}]\n",
		    i, r->vendor->port, i);
		rig_write_accelerator(name, text);
		free(text);
		text = xasprintf("secrets/%s/hook", name);
		folder_write(text, "x\n");
		free(text);
	}
	start(r);
	rig_pull(r, "g-1", .action = "opened");
	n_expected = 101;
	rig_wait_until(r, so_many_dispatches);
	rig_wait_until(r, so_many_hooks);
	rig_wait_until(r, sends_nothing);
	assert_int_equal(rig_n_dispatches(r), 101);
	assert_int_equal(rig_n_hooks(r), 101);
	assert_int_equal(rig_counters(r).n_retries, 0);
	assert_int_equal(fake_count(r->gh, "POST /repos/"), 101); /* one request each */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(signs_webhooks),
	    TEST(lists_accelerators_for_github),
	    TEST(pushes_name_the_commit),
	    TEST(retries_after_a_failure),
	    TEST(gives_up_on_a_final_answer),
	    TEST(follows_no_redirect),
	    TEST(reaches_allowed_addresses_only),
	    TEST(sends_nothing_to_an_accelerator_that_left),
	    TEST(a_hanging_vendor_delays_no_other_vendor),
	    TEST(sends_interrupted_requests_again),
	    TEST(reaches_a_hundred_targets),
	};

	return cmocka_run_group_tests_name("dispatch_sender", tests, NULL, NULL);
}
