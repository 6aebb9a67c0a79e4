/* Both endpoints on a real server, with real tokens and an issuer whose keys are fetched; each test sets the store's
 * answers. */
#include "parts_rig.h"

#include "model/client_payload.h"
#include "oidc_token.h"
#include "replaces.h"
#include "runners/runners.h"
#include "secret_of.h"
#include "store/credentials.h"
#include "store/job_reports.h"
#include "store/jobs.h"

REPLACES(store_report_job);
REPLACES(store_check_identity);
REPLACES(store_report_nightly);

#define GUID     "0b989ba4-242f-11e5-81e1-c7b6966d2516"
#define DISPATCH "abcdefghijklmnopqrstuvwxyz"
#define SHA      "abcdef0123456789abcdef0123456789abcdef01"

#define WORKFLOW(more) "{\"status\":\"completed\",\"name\":\"ci\",\"run_id\":7" more "}"
#define BODY(more)                                                                                                     \
	"{\"delivery_id\":\"" GUID "\",\"outpost\":{\"dispatch_id\":\"" DISPATCH "\"},"                                \
	"\"workflow\":" WORKFLOW(more) "}"

enum jwks_mode { JWKS_GOOD, JWKS_FAILS, JWKS_HANGS };

struct fixture {
	struct parts parts;
	struct runners *runners;
	struct test_key key;
	struct secret *callback_key;
	enum jwks_mode mode;
	int n_fetches;
	bool is_closing, is_closed;
};

/* ---- a fake store ---- */

static struct {
	struct loop *loop;
	int submit_err, done_err;
	enum report_outcome outcome;
	int n_jobs, n_nightlies;
	enum identity_outcome identity;
	int identity_err;
	int n_identities;
	char issuer[64];
	struct repository_ids ids;
	char repository[64], dispatch_id[64], accelerator[64], allowed[128], silent[128], sha[64];
} fake;

static void keep(char *out, size_t n, const char *text) { snprintf(out, n, "%s", text ? text : "-"); }

static void keep_list(char *out, size_t n, const char *const *list)
{
	struct buf joined = BUF_INIT(1024);

	for (; *list; list++)
		buf_appendf(&joined, "%s,", *list);
	keep(out, n, buf_str(&joined));
	buf_release(&joined);
}

static void finish(void *p)
{
	struct store_op *op = p;

	op->err = fake.done_err;
	op->done(op);
}

int store_report_job(struct store *s, struct report_job *op)
{
	(void)s;
	fake.n_jobs++;
	keep(fake.repository, sizeof fake.repository, op->repository);
	keep(fake.dispatch_id, sizeof fake.dispatch_id, op->dispatch_id);
	keep(fake.accelerator, sizeof fake.accelerator, op->accelerator);
	keep_list(fake.allowed, sizeof fake.allowed, op->allowed);
	keep_list(fake.silent, sizeof fake.silent, op->silent);
	op->outcome = fake.outcome;
	op->job_id = 7;
	if (!fake.submit_err)
		loop_reap(fake.loop, finish, &op->op);
	return fake.submit_err;
}

int store_check_identity(struct store *s, struct check_identity *op)
{
	(void)s;
	fake.n_identities++;
	keep(fake.issuer, sizeof(fake.issuer), op->issuer);
	fake.ids = op->token;
	op->outcome = fake.identity;
	op->recorded = (struct repository_ids){1, 2};
	if (!fake.identity_err)
		loop_reap(fake.loop, finish, &op->op);
	return fake.identity_err;
}

int store_report_nightly(struct store *s, struct report_nightly *op)
{
	(void)s;
	fake.n_nightlies++;
	keep(fake.repository, sizeof fake.repository, op->target);
	keep(fake.accelerator, sizeof fake.accelerator, op->accelerator);
	keep(fake.sha, sizeof fake.sha, op->head_sha);
	op->outcome = REPORT_RECORDED;
	op->job_id = 8;
	loop_reap(fake.loop, finish, &op->op);
	return 0;
}

/* ---- the parts ---- */

static void on_jwks_gone(struct http_request *r) { (void)r; }

static void on_jwks(struct http_request *r, void *owner)
{
	struct fixture *f = owner;
	char *text;

	f->n_fetches++;
	if (f->mode == JWKS_HANGS) {
		http_on_gone(r, on_jwks_gone);
		return;
	}
	if (f->mode == JWKS_FAILS) {
		http_respond_json1(r, 500, "error", "down");
		return;
	}
	text = jwks_text(test_key_jwk(&f->key, "k1"));
	http_respond(r, 200, "application/json", NULL, text, strlen(text));
	free(text);
}

static void write_accelerator(const char *name, const char *level, const char *repositories)
{
	char *path = xasprintf("accelerators.d/%s.yml", name);
	char *text = xasprintf("name: %s\ntitle: %s\nlevel: %s\nrunners:\n%s", name, name, level, repositories);

	folder_write(path, text);
	free(path);
	free(text);
}

static void write_registry(void)
{
	write_accelerator("npu", "L2", "  - {name: ci, github: {repository: Ascend/pytorch}}\n");
	write_accelerator("quiet", "L1", "  - {name: ci, github: {repository: quiet/quiet}}\n");
	write_accelerator("spyre-a", "L2", "  - {name: ci, github: {repository: spyre/spyre}}\n");
	write_accelerator("spyre-b", "L1", "  - {name: ci, github: {repository: spyre/spyre}}\n");
	write_accelerator("bound", "L2",
	    "  - name: ci\n    github: {repository: bound/bound, workflow: "
	    ".github/workflows/x.yml}\n");
}

static struct config *load_with_issuer(const char *url)
{
	char *text = xasprintf(MINIMAL_YML "  oidc:\n    audience: " AUDIENCE "\n    issuers:\n"
					   "      - issuer: " ISSUER "\n        jwks_url: %s/jwks\n"
					   "accelerators:\n  directory: accelerators.d\n",
	    url);

	folder_write("outpost.yml", text);
	free(text);
	return folder_load();
}

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof *f);

	folder_setup(state);
	parts_open(&f->parts);
	f->key = test_key_of(shared_rsa_key());
	f->callback_key = secret_of("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk");
	memset(&fake, 0, sizeof fake);
	fake.loop = f->parts.loop;
	http_server_route(f->parts.server, &(struct http_route){
					       .method = "GET",
					       .pattern = "/jwks",
					       .on_request = on_jwks,
					       .owner = f,
					   });
	f->runners = runners_new(f->parts.loop, f->parts.store, f->parts.client, f->parts.server, f->callback_key);
	write_registry();
	config_unref(f->parts.config);
	f->parts.config = load_with_issuer(f->parts.url);
	runners_configure(f->runners, f->parts.config);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (!f->is_closing)
		runners_close(f->runners, parts_on_closed, &f->is_closed);
	loop_run_until(f->parts.loop, &f->is_closed);
	parts_close_server(&f->parts);
	parts_close(&f->parts);
	runners_free(f->runners);
	secret_unref(f->callback_key);
	test_key_release(&f->key);
	free(f);
	return folder_teardown(state);
}

/* ---- asking ---- */

/* A valid token of that repository, with the `claim` changed if given. free(). */
static char *token_of(struct fixture *f, const char *repository, const char *claim, const char *value, const char *kid)
{
	json_t *claims = good_claims(clock_wall_ms() / 1000);
	char *token;

	json_object_del(claims, "job_workflow_ref");
	json_object_set_new(claims, "repository", json_string(repository));
	if (claim)
		json_object_set_new(claims, claim, json_string(value));
	token = mint(&f->key, kid, claims);
	json_decref(claims);
	return token;
}

/* Posts; the answer must contain `expected`. token NULL: no header. Takes the token. */
static int post(struct fixture *f, const char *path, char *token, const char *body, const char *expected)
{
	char *line = xasprintf("Authorization: Bearer %s", token ? token : "");
	const char *headers[] = {token ? line : NULL, NULL};
	struct ask a;
	int status;

	ask_start(&f->parts, &a, path, headers, body, strlen(body));
	status = ask_wait(&f->parts, &a);
	if (!strstr(buf_str(&a.call.answer), expected))
		fail_msg("%d %s", status, buf_str(&a.call.answer));
	assert_int_equal(ask_has_header(&a, "WWW-Authenticate"), status == 401);
	assert_int_equal(ask_has_header(&a, "Retry-After"), status == 429 || status == 503);
	ask_release(&a);
	free(line);
	free(token);
	return status;
}

static int call_back(struct fixture *f, const char *repository, const char *body, const char *expected)
{
	return post(f, "/github/callback", token_of(f, repository, NULL, NULL, "k1"), body, expected);
}

static void test_records(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call_back(f, "ascend/PyTorch", BODY(""),
			     "{\"ok\":true,\"status\":\"completed\",\"job\":7,"
			     "\"report_url\":\"https://outpost.example.org/jobs/7\"}"),
	    200);
	assert_string_equal(fake.repository, "Ascend/pytorch");
	assert_string_equal(fake.dispatch_id, DISPATCH);
	assert_string_equal(fake.accelerator, "-");
	assert_string_equal(fake.allowed, "npu,");
	assert_string_equal(fake.silent, "");
	assert_int_equal(
	    post(f, "/github/callback/", token_of(f, "Ascend/pytorch", NULL, NULL, "k1"), BODY(""), "\"ok\":true"),
	    200);
	assert_int_equal(call_back(f, "spyre/spyre", BODY(",\"accelerator\":\"spyre-a\""), "ok"), 200);
	assert_string_equal(fake.accelerator, "spyre-a");
	assert_string_equal(fake.allowed, "spyre-a,spyre-b,");
	assert_string_equal(fake.silent, "spyre-b,");
	assert_int_equal(f->n_fetches, 1);
	assert_int_equal(runners_counters(f->runners)->n_recorded, 3);
}

static void test_answers_each_outcome(void **state)
{
	static const struct {
		enum report_outcome outcome;
		int status;
		const char *expected;
	} table[] = {
	    {REPORT_RECORDED, 200, "\"job\":7"},
	    {REPORT_UNCHANGED, 200, "\"job\":7"},
	    {REPORT_IGNORED_CLOSED, 200, "{\"ok\":true,\"status\":\"ignored\"}"},
	    {REPORT_IGNORED_LEVEL, 200, "{\"ok\":true,\"status\":\"ignored\"}"},
	    {REPORT_CONFLICT, 409, "{\"detail\":"},
	    {REPORT_NO_DISPATCH, 400, "no such dispatch"},
	    {REPORT_WHICH_ACCELERATOR, 400, "workflow.accelerator"},
	    {REPORT_WRONG_ACCELERATOR, 403, "{\"detail\":"},
	    {REPORT_NOT_ITS_LEASE, 403, "of its own leases"},
	    {REPORT_TOO_MANY_JOBS, 413, "1,000 jobs"},
	    {REPORT_TOO_MANY_RESULTS, 413, "1,000,000 results"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		fake.outcome = table[i].outcome;
		assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), table[i].expected), table[i].status);
	}
	fake.outcome = REPORT_WRONG_ACCELERATOR;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(",\"accelerator\":\"npu\""), "workflow.accelerator"), 400);
	fake.submit_err = ERR_BUSY;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "detail"), 503);
	fake.submit_err = 0;
	fake.done_err = ERR_FULL;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "detail"), 503);
}

/* Finding 15. */
static void test_checks_the_id_of_the_repository(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call_back(f, "ascend/pytorch", BODY(""), "ok"), 200);
	assert_int_equal(fake.n_identities, 1);
	assert_string_equal(fake.issuer, ISSUER);
	assert_int_equal(fake.ids.repository_id, 74);
	assert_int_equal(fake.ids.owner_id, 65);
	fake.identity = IDENTITY_NOT_AS_RECORDED;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "repository_id 74, repository_owner_id 65"), 403);
	fake.identity = IDENTITY_NOT_AS_PINNED;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "pins for Ascend/pytorch"), 403);
	assert_int_equal(fake.n_jobs, 1);
	assert_int_equal(runners_counters(f->runners)->n_identity_refused, 2);
	fake.identity = IDENTITY_ACCEPTED;
	fake.identity_err = ERR_BUSY;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "detail"), 503);
	/* an unregistered caller leaves no trace */
	assert_int_equal(fake.n_identities, 4);
	assert_int_equal(call_back(f, "someone/else", BODY(""), "ignored"), 200);
	assert_int_equal(fake.n_identities, 4);
}

static void test_checks_the_registry_first(void **state)
{
	static const char ignored[] = "{\"ok\":true,\"status\":\"ignored\"}";
	struct fixture *f = *state;

	assert_int_equal(call_back(f, "someone/else", "not even JSON", ignored), 200);
	assert_int_equal(call_back(f, "quiet/quiet", BODY(""), ignored), 200);
	assert_int_equal(call_back(f, "bound/bound", BODY(""), "workflow"), 403);
	assert_int_equal(call_back(f, "spyre/spyre", BODY(",\"accelerator\":\"npu\""), "workflow.accelerator"), 400);
	assert_int_equal(fake.n_jobs, 0);
	assert_int_equal(post(f, "/github/callback",
			     token_of(f, "bound/bound", "job_workflow_ref",
				 "bound/bound/.github/workflows/x.yml@refs/heads/main", "k1"),
			     BODY(""), "ok"),
	    200);
	assert_int_equal(fake.n_jobs, 1);
}

static void test_refuses_bodies(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call_back(f, "Ascend/pytorch", "", "{\"detail\":\"the body"), 400);
	assert_int_equal(call_back(f, "Ascend/pytorch", "{}", "delivery_id"), 400);
	assert_int_equal(call_back(f, "Ascend/pytorch", "{\"delivery_id\":\"a\"}", "workflow"), 400);
	assert_int_equal(fake.n_jobs, 0);
}

static void test_accepts_self_reports(void **state)
{
	static const char nightly[] =
	    "{\"event_type\":\"nightly\",\"delivery_id\":\"" SHA "\",\"workflow\":" WORKFLOW("") "}";
	static const char of_a[] = "{\"event_type\":\"periodic\",\"delivery_id\":\"" SHA
				   "\",\"workflow\":" WORKFLOW(",\"accelerator\":\"spyre-a\"") "}";
	static const char of_b[] = "{\"event_type\":\"periodic\",\"delivery_id\":\"" SHA
				   "\",\"workflow\":" WORKFLOW(",\"accelerator\":\"spyre-b\"") "}";
	struct fixture *f = *state;

	assert_int_equal(call_back(f, "Ascend/pytorch", nightly, "\"job\":8"), 200);
	assert_string_equal(fake.repository, "Ascend/pytorch");
	assert_string_equal(fake.accelerator, "npu");
	assert_string_equal(fake.sha, SHA);
	assert_int_equal(call_back(f, "spyre/spyre", nightly, "workflow.accelerator"), 400);
	assert_int_equal(call_back(f, "spyre/spyre", of_a, "\"job\":8"), 200);
	assert_string_equal(fake.accelerator, "spyre-a");
	assert_int_equal(call_back(f, "spyre/spyre", of_b, "ignored"), 200);
	assert_int_equal(fake.n_nightlies, 2);
	assert_int_equal(fake.n_jobs, 0);
}

/* Ids of other CI services are not commits: the run counts as the vendor's own only if no dispatch is found. */
static void test_accepts_self_reports_by_any_id(void **state)
{
#define BUILDKITE "\"event_type\":\"nightly\",\"delivery_id\":\"buildkite-89983-0191\""
	static const char of_a_commit[] =
	    "{" BUILDKITE ",\"pytorch_head_sha\":\"" SHA "\",\"workflow\":" WORKFLOW("") "}";
	static const char of_none[] = "{" BUILDKITE ",\"workflow\":" WORKFLOW("") "}";
	static const char of_a_dispatch[] =
	    "{" BUILDKITE ",\"outpost\":{\"dispatch_id\":\"abcdefghijklmnopqrstuvwxyz\"},"
	    "\"workflow\":" WORKFLOW("") "}";
	static const char of_a[] = "{" BUILDKITE ",\"workflow\":" WORKFLOW(",\"accelerator\":\"spyre-a\"") "}";
	static const char running[] = "{" BUILDKITE ",\"workflow\":{\"status\":\"in_progress\","
				      "\"name\":\"ci\",\"run_id\":\"1\"}}";
	struct fixture *f = *state;

	assert_int_equal(call_back(f, "Ascend/pytorch", of_none, "\"job\":7"), 200);
	assert_int_equal(fake.n_nightlies, 0);
	fake.outcome = REPORT_NO_DISPATCH;
	assert_int_equal(call_back(f, "Ascend/pytorch", of_a_commit, "\"job\":8"), 200);
	assert_string_equal(fake.sha, SHA);
	assert_string_equal(fake.accelerator, "npu");
	assert_int_equal(call_back(f, "Ascend/pytorch", of_none, "\"job\":8"), 200);
	assert_string_equal(fake.sha, "-");
	assert_int_equal(call_back(f, "Ascend/pytorch", of_a_dispatch, "no such dispatch"), 400);
	assert_int_equal(call_back(f, "Ascend/pytorch", running, "must be completed"), 400);
	assert_int_equal(call_back(f, "spyre/spyre", of_none, "workflow.accelerator"), 400);
	assert_int_equal(call_back(f, "spyre/spyre", of_a, "\"job\":8"), 200);
	assert_int_equal(fake.n_nightlies, 3);
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "no such dispatch"), 400);
#undef BUILDKITE
}

static void test_refuses_tokens(void **state)
{
	struct fixture *f = *state;
	char *other = token_of(f, "Ascend/pytorch", "aud", "other", "k1");

	assert_int_equal(post(f, "/github/callback", NULL, BODY(""), "Bearer"), 401);
	assert_int_equal(
	    post(f, "/github/callback", xstrdup("x"), BODY(""), "{\"detail\":\"the token is not valid\"}"), 401);
	assert_int_equal(post(f, "/github/callback", other, BODY(""), "{\"detail\":\"the token is not valid\"}"), 401);
	assert_int_equal(f->n_fetches, 0);
	assert_int_equal(runners_counters(f->runners)->n_bad_token, 3);
}

static void test_fetches_keys_once(void **state)
{
	enum { N = 20 };
	struct fixture *f = *state;
	char *token = token_of(f, "Ascend/pytorch", NULL, NULL, "k1");
	char *line = xasprintf("Authorization: Bearer %s", token);
	const char *const headers[] = {line, NULL};
	struct ask asks[N];

	for (int i = 0; i < N; i++)
		ask_start(&f->parts, &asks[i], "/github/callback", headers, BODY(""), strlen(BODY("")));
	for (int i = 0; i < N; i++) {
		assert_int_equal(ask_wait(&f->parts, &asks[i]), 200);
		ask_release(&asks[i]);
	}
	for (int i = 0; i < N; i++) {
		char *unknown = token_of(f, "Ascend/pytorch", NULL, NULL, "k2");

		assert_int_equal(post(f, "/github/callback", unknown, BODY(""), "not valid"), 401);
	}
	assert_int_equal(f->n_fetches, 1);
	free(token);
	free(line);
}

static void test_is_busy_while_the_issuer_is_down(void **state)
{
	struct fixture *f = *state;

	f->mode = JWKS_FAILS;
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "detail"), 503);
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "detail"), 503);
	assert_int_equal(f->n_fetches, 1);
	assert_int_equal(runners_counters(f->runners)->n_key_fetch_failures, 1);
}

static void test_answers_waiting_callers_when_it_closes(void **state)
{
	struct fixture *f = *state;
	char *token = token_of(f, "Ascend/pytorch", NULL, NULL, "k1");
	char *line = xasprintf("Authorization: Bearer %s", token);
	const char *const headers[] = {line, NULL};
	struct ask a, other;

	f->mode = JWKS_HANGS;
	ask_start(&f->parts, &a, "/github/callback", headers, BODY(""), strlen(BODY("")));
	while (f->n_fetches == 0) { /* each unrelated answer is a turn of the loop */
		ask_start(&f->parts, &other, "/none", NULL, NULL, 0);
		ask_wait(&f->parts, &other);
		ask_release(&other);
	}
	assert_false(a.is_done);
	runners_close(f->runners, parts_on_closed, &f->is_closed);
	f->is_closing = true;
	assert_int_equal(ask_wait(&f->parts, &a), 503);
	ask_release(&a);
	free(token);
	free(line);
}

static void test_keeps_keys_when_reconfigured(void **state)
{
	struct fixture *f = *state;
	struct config *elsewhere;

	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "ok"), 200);
	runners_configure(f->runners, f->parts.config);
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "ok"), 200);
	assert_int_equal(f->n_fetches, 1);
	elsewhere = load_with_issuer("http://127.0.0.1:1");
	runners_configure(f->runners, elsewhere);
	config_unref(elsewhere);
	assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "detail"), 503);
	assert_int_equal(f->n_fetches, 1);
}

static void test_limits_each_repository(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 100; i++)
		assert_int_equal(call_back(f, "Ascend/pytorch", BODY(""), "ok"), 200);
	assert_int_equal(call_back(f, "ascend/pytorch", BODY(""), "detail"), 429);
	assert_int_equal(call_back(f, "spyre/spyre", BODY(",\"accelerator\":\"spyre-a\""), "ok"), 200);
	assert_int_equal(fake.n_jobs, 101);
}

#define JOBS_PATH "/api/v1/dispatches/" DISPATCH "/jobs"

/* Creates a callback token for `dispatch` and `accelerator`, valid for `for_ms`. */
static int post_job(struct fixture *f, const char *dispatch, const char *accelerator, int64_t for_ms, const char *body,
    const char *expected)
{
	char *token = callback_token_make(f->callback_key, dispatch, accelerator, clock_wall_ms() + for_ms);

	return post(f, JOBS_PATH, token, body, expected);
}

static void test_vendor_api(void **state)
{
	static const char other[] = "aaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct fixture *f = *state;

	assert_int_equal(post_job(f, DISPATCH, "npu", 60000, WORKFLOW(""), "\"job\":7"), 200);
	assert_string_equal(fake.repository, "-");
	assert_string_equal(fake.dispatch_id, DISPATCH);
	assert_string_equal(fake.accelerator, "npu");
	assert_int_equal(post_job(f, other, "npu", 60000, WORKFLOW(""), "not valid"), 401);
	assert_int_equal(post_job(f, DISPATCH, "npu", -60000, WORKFLOW(""), "expired"), 401);
	assert_int_equal(post(f, JOBS_PATH, xstrdup("oct1.x"), WORKFLOW(""), "not valid"), 401);
	assert_int_equal(post(f, JOBS_PATH, NULL, WORKFLOW(""), "Bearer"), 401);
	assert_int_equal(
	    post_job(f, DISPATCH, "npu", 60000, WORKFLOW(",\"accelerator\":\"bound\""), "workflow.accelerator"), 400);
	assert_int_equal(post_job(f, DISPATCH, "npu", 60000, "{}", "status"), 400);
	assert_int_equal(post_job(f, DISPATCH, "gone", 60000, WORKFLOW(""), "ignored"), 200);
	assert_int_equal(fake.n_jobs, 1);
	/* The report is not stored, but its dispatch ends. */
	fake.outcome = REPORT_IGNORED_LEVEL;
	assert_int_equal(post_job(f, DISPATCH, "quiet", 60000, WORKFLOW(""), "ignored"), 200);
	assert_string_equal(fake.silent, "quiet,");
	assert_int_equal(fake.n_jobs, 2);
	fake.outcome = REPORT_CONFLICT;
	assert_int_equal(post_job(f, DISPATCH, "npu", 60000, WORKFLOW(""), "detail"), 409);
	fake.outcome = REPORT_NO_DISPATCH;
	assert_int_equal(post_job(f, DISPATCH, "npu", 60000, WORKFLOW(""), "dispatch"), 400);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_records),
	    TEST(test_answers_each_outcome),
	    TEST(test_checks_the_registry_first),
	    TEST(test_checks_the_id_of_the_repository),
	    TEST(test_refuses_bodies),
	    TEST(test_accepts_self_reports),
	    TEST(test_accepts_self_reports_by_any_id),
	    TEST(test_refuses_tokens),
	    TEST(test_fetches_keys_once),
	    TEST(test_is_busy_while_the_issuer_is_down),
	    TEST(test_answers_waiting_callers_when_it_closes),
	    TEST(test_keeps_keys_when_reconfigured),
	    TEST(test_limits_each_repository),
	    TEST(test_vendor_api),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
