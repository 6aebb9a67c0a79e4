/* An issuer leaves the configuration while a job's log waits for its keys. */
#include "parts_rig.h"

#include "oidc_token.h"
#include "runners/runners.h"
#include "secret_of.h"

#define LOG_PATH "/api/v1/jobs/7/log"

struct fixture {
	struct parts parts;
	struct logs *logs;
	struct runners *runners;
	struct test_key key;
	struct secret *callback_key;
	bool is_fetching;
};

static void on_jwks_gone(struct http_request *r) { (void)r; }

/* Never answers. */
static void on_jwks(struct http_request *r, void *owner)
{
	struct fixture *f = owner;

	f->is_fetching = true;
	http_on_gone(r, on_jwks_gone);
}

static void configure(struct fixture *f, const char *issuer, const char *keys)
{
	char *text = xasprintf(MINIMAL_YML "  oidc:\n    audience: " AUDIENCE "\n    issuers:\n"
					   "      - issuer: %s\n        jwks_url: %s/%s\n"
					   "accelerators:\n  directory: accelerators.d\n",
	    issuer, f->parts.url, keys);

	folder_write("outpost.yml", text);
	free(text);
	config_unref(f->parts.config);
	f->parts.config = folder_load();
	runners_configure(f->runners, f->parts.config);
}

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct error e = {0};

	folder_setup(state);
	parts_open(&f->parts);
	f->key = test_key_of(shared_rsa_key());
	f->callback_key = secret_of("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk");
	http_server_route(f->parts.server,
	    &(struct http_route){.method = "GET", .pattern = "/jwks", .on_request = on_jwks, .owner = f});
	if (logs_open(f->parts.loop, "state", &f->logs, &e))
		fail_msg("%s", e.text);
	f->runners = runners_new(f->parts.loop, f->parts.store, f->parts.client, f->parts.server, f->callback_key);
	runners_accept_documents(f->runners, f->parts.server, f->logs);
	folder_write("accelerators.d/npu.yml", "name: npu\ntitle: npu\nlevel: L2\nrunners:\n"
					       "  - {name: ci, github: {repository: Ascend/pytorch}}\n");
	configure(f, ISSUER, "jwks");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	bool is_closed = false, are_logs_closed = false;

	runners_stop(f->runners);
	parts_close_server(&f->parts);
	runners_close(f->runners, parts_on_closed, &is_closed);
	loop_run_until(f->parts.loop, &is_closed);
	logs_close(f->logs, parts_on_closed, &are_logs_closed);
	loop_run_until(f->parts.loop, &are_logs_closed);
	parts_close_store(&f->parts);
	runners_free(f->runners);
	secret_unref(f->callback_key);
	parts_close(&f->parts);
	test_key_release(&f->key);
	free(f);
	return folder_teardown(state);
}

/* Sends a log, and runs until the keys are requested. The test checks its status afterwards. */
static int put_while(struct fixture *f, void (*reload)(struct fixture *f))
{
	int status;
	json_t *claims = good_claims(clock_wall_ms() / 1000);
	char *token = mint(&f->key, "k1", claims);
	char *line = xasprintf("Authorization: Bearer %s", token);
	const char *const headers[] = {line, NULL};
	struct ask a = {.url = xasprintf("%s%s", f->parts.url, LOG_PATH)};

	a.call = (struct http_call){.method = "PUT",
	    .url = a.url,
	    .headers = headers,
	    .body = "text",
	    .body_bytes = 4,
	    .allow_plain_http = true,
	    .done = ask_on_done};
	http_call_start(f->parts.client, &a.call);
	loop_run_until(f->parts.loop, &f->is_fetching);
	reload(f);
	status = ask_wait(&f->parts, &a);
	ask_release(&a);
	json_decref(claims);
	free(token);
	free(line);
	return status;
}

static void leave(struct fixture *f) { configure(f, "https://another.example", "jwks"); }

static void move(struct fixture *f) { configure(f, ISSUER, "elsewhere"); }

static void a_request_that_waits_for_removed_keys_is_refused(void **state)
{
	assert_int_equal(put_while(*state, leave), 401);
}

/* No keys are known, so the owner of the token is not known yet. */
static void a_request_that_waits_for_moved_keys_asks_the_new_url(void **state)
{
	assert_int_equal(put_while(*state, move), 503);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_request_that_waits_for_removed_keys_is_refused, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(a_request_that_waits_for_moved_keys_asks_the_new_url, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("runners_issuer_leaves", tests, NULL, NULL);
}
