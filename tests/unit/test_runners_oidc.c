/* Which tokens are accepted, and which repository each speaks for. */
#include <setjmp.h>

#include <cmocka.h>

#include "oidc_token.h"
#include "runners/access.h"
#include "runners/issuer_keys.h"
#include "runners_registry.h"

#define NOW_S     INT64_C(1790000000)
#define BUILDKITE "https://agent.buildkite.example"
#define ORG       "0190aaaa-0000-4000-8000-000000000001"
#define PIPE      "0190bbbb-0000-4000-8000-000000000002"

static struct test_key key, stranger;
static struct jwks keys;

static char *branches[] = {TEXT("main"), TEXT("release"), NULL}, *builds[] = {TEXT("7"), NULL};
static struct oidc_claim required[] = {
    {TEXT("build_branch"), branches},
    {TEXT("build_number"), builds},
};
static struct oidc_mapping mappings[] = {
    {TEXT(ORG "/" PIPE), TEXT("vllm-project/vllm"), required, ARRAY_LEN(required)},
};
static struct oidc_issuer issuers[] = {
    {TEXT(ISSUER), TEXT("https://issuer.example/jwks"), NULL, 0},
    {TEXT(BUILDKITE), TEXT("https://agent.buildkite.example/jwks"), mappings, 1},
};
static const struct config config = {
    .oidc_audience = TEXT(AUDIENCE),
    .oidc_issuers = issuers,
    .n_oidc_issuers = ARRAY_LEN(issuers),
};

static int set_up(void **state)
{
	char *text;
	int err;

	(void)state;
	key = test_key_of(EVP_RSA_gen(2048));
	stranger = test_key_of(EVP_RSA_gen(2048));
	text = jwks_text(test_key_jwk(&key, "k1"));
	err = jwks_parse(text, strlen(text), &keys, NULL);
	free(text);
	return err;
}

static int tear_down(void **state)
{
	(void)state;
	jwks_release(&keys);
	test_key_release(&key);
	test_key_release(&stranger);
	return 0;
}

/* Both issuers have the same key here; the mapping distinguishes them. */
static struct rsa_public_key *find_key(const char *issuer, const char *kid, void *owner)
{
	(void)issuer;
	(void)owner;
	return jwks_find(&keys, kid);
}

/* Verifies and releases; the reason for a refusal must contain `why`. */
static int verify(const char *token, const char *repository, const char *why)
{
	struct oidc_caller caller;
	struct error e = {0};
	int err = oidc_verify(&config, token, NOW_S * 1000, find_key, NULL, &caller, &e);

	if (!err && !str_eq(caller.repository, repository))
		fail_msg("speaks for %s", caller.repository);
	if (err && (!why || !strstr(e.text, why)))
		fail_msg("refused: %s", e.text);
	assert_null(strstr(e.text, token));
	oidc_caller_release(&caller);
	return err;
}

static void test_accepts_a_good_token(void **state)
{
	json_t *claims = good_claims(NOW_S);
	char *token = mint(&key, "k1", claims);
	struct oidc_caller caller;

	(void)state;
	assert_int_equal(oidc_verify(&config, token, NOW_S * 1000, find_key, NULL, &caller, NULL), 0);
	assert_string_equal(caller.repository, "Ascend/pytorch");
	assert_string_equal(caller.workflow_ref, "Ascend/pytorch/.github/workflows/ci.yml@refs/heads/main");
	assert_ptr_equal(caller.issuer, &issuers[0]);
	assert_int_equal(caller.ids.repository_id, 74);
	assert_int_equal(caller.ids.owner_id, 65);
	oidc_caller_release(&caller);
	free(token);
	json_decref(claims);
}

static const struct {
	const char *claim, *value; /* NULL: left out */
	int err;
	const char *why;
} changes[] = {
    {"aud", "[\"x\",\"" AUDIENCE "\"]", 0, NULL},
    {"aud", "\"x\"", ERR_AUTH, "audience"},
    {"aud", "[\"x\"]", ERR_AUTH, "audience"},
    {"aud", "[]", ERR_AUTH, "audience"},
    {"aud", "{\"0\":\"" AUDIENCE "\"}", ERR_AUTH, "audience"},
    {"aud", NULL, ERR_AUTH, "audience"},
    {"iss", "\"https://evil.example\"", ERR_AUTH, "issuer"},
    {"iss", "\"https://issuer.example/\"", ERR_AUTH, "issuer"},
    {"iss", "[\"" ISSUER "\"]", ERR_AUTH, "issuer"},
    {"iss", NULL, ERR_AUTH, "issuer"},
    {"exp", "1789999941", 0, NULL}, /* 59 s past: within the leeway */
    {"exp", "1789999940.5", 0, NULL},
    {"exp", "1789999940", ERR_AUTH, "expired"},
    {"exp", "1e300", 0, NULL},
    {"exp", "-1", ERR_AUTH, "expired"},
    {"exp", "\"1790000300\"", ERR_AUTH, "exp"},
    {"exp", NULL, ERR_AUTH, "exp"},
    {"nbf", "1790000060", 0, NULL},
    {"nbf", "1790000061", ERR_AUTH, "nbf"},
    {"nbf", "\"x\"", ERR_AUTH, "nbf"},
    {"nbf", NULL, 0, NULL},
    {"iat", "1790000060", 0, NULL},
    {"iat", "1790000061", ERR_AUTH, "iat"},
    {"iat", "null", ERR_AUTH, "iat"},
    {"iat", NULL, 0, NULL},
    {"repository", NULL, ERR_AUTH, "repository"},
    {"repository", "7", ERR_AUTH, "repository"},
    {"repository", "\"a/b/c\"", ERR_AUTH, "repository"},
    {"repository_id", NULL, 0, NULL},
    {"repository_id", "74", 0, NULL},
    {"repository_id", "9223372036854775807", 0, NULL},
    {"repository_id", "\"9223372036854775808\"", ERR_AUTH, "repository_id"},
    {"repository_id", "0", ERR_AUTH, "repository_id"},
    {"repository_id", "\"-74\"", ERR_AUTH, "repository_id"},
    {"repository_id", "\"74 \"", ERR_AUTH, "repository_id"},
    {"repository_id", "\"\"", ERR_AUTH, "repository_id"},
    {"repository_id", "null", ERR_AUTH, "repository_id"},
    {"repository_id", "[74]", ERR_AUTH, "repository_id"},
    {"repository_owner_id", "7.5", ERR_AUTH, "repository_owner_id"},
    {"repository_owner_id", NULL, 0, NULL},
    {"job_workflow_ref", NULL, 0, NULL},
    {"job_workflow_ref", "7", 0, NULL},
};

static void test_claims(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		json_t *claims = good_claims(NOW_S);
		char *token;
		int err;

		if (changes[i].value)
			json_object_set_new(
			    claims, changes[i].claim, json_loads(changes[i].value, JSON_DECODE_ANY, NULL));
		else
			json_object_del(claims, changes[i].claim);
		token = mint(&key, "k1", claims);
		err = verify(token, "Ascend/pytorch", changes[i].why);
		if (err != changes[i].err)
			fail_msg("%s: %s gives %s", changes[i].claim, changes[i].value, err_name(err));
		free(token);
		json_decref(claims);
	}
}

/* The token with another header, signed as RS256 all the same. */
static char *with_header(const char *header)
{
	json_t *claims = good_claims(NOW_S), *h = json_loads(header, 0, NULL);
	char *token = mint_with(&key, h, claims);

	json_decref(h);
	json_decref(claims);
	return token;
}

static void test_headers(void **state)
{
	static const struct {
		const char *header;
		int err;
		const char *why;
	} table[] = {
	    {"{\"alg\":\"RS256\",\"kid\":\"k1\"}", 0, NULL},
	    {"{\"alg\":\"none\",\"kid\":\"k1\"}", ERR_AUTH, "RS256"},
	    {"{\"alg\":\"HS256\",\"kid\":\"k1\"}", ERR_AUTH, "RS256"},
	    {"{\"alg\":\"rs256\",\"kid\":\"k1\"}", ERR_AUTH, "RS256"},
	    {"{\"alg\":\"RS512\",\"kid\":\"k1\"}", ERR_AUTH, "RS256"},
	    {"{\"alg\":\"RS256\"}", ERR_AUTH, "key"},
	    {"{\"alg\":\"RS256\",\"kid\":\"k2\"}", ERR_NOT_FOUND, "k2"},
	    {"{\"alg\":\"RS256\",\"kid\":\"k1\",\"crit\":[\"x\"]}", ERR_AUTH, "crit"},
	    {"{\"kid\":\"k1\"}", ERR_AUTH, "alg"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *token = with_header(table[i].header);

		assert_int_equal(verify(token, "Ascend/pytorch", table[i].why), table[i].err);
		free(token);
	}
}

static void test_signatures(void **state)
{
	json_t *claims = good_claims(NOW_S), *other = good_claims(NOW_S);
	char *good = mint(&key, "k1", claims), *forged = mint(&stranger, "k1", claims);
	char *second, *spliced;

	(void)state;
	assert_int_equal(verify(forged, NULL, "signature"), ERR_AUTH);
	json_object_set_new(other, "repository", json_string("vllm-project/vllm"));
	second = mint(&key, "k1", other);
	/* the claims of one under the signature of the other */
	spliced = xasprintf("%.*s%s", (int)(strrchr(second, '.') - second), second, strrchr(good, '.'));
	assert_int_equal(verify(spliced, NULL, "signature"), ERR_AUTH);
	free(spliced);
	spliced = xasprintf("%.*s.", (int)(strrchr(good, '.') - good), good);
	assert_int_equal(verify(spliced, NULL, "signature"), ERR_AUTH);
	free(spliced);
	good[strlen(good) - 40] ^= 1;
	assert_int_equal(verify(good, NULL, ""), ERR_AUTH);
	free(good);
	free(forged);
	free(second);
	json_decref(claims);
	json_decref(other);
}

/* The public key as an HMAC key, a well-known attack. */
static void test_refuses_hs256_with_the_public_key(void **state)
{
	char *pem = pem_public(key.pair);
	json_t *claims = good_claims(NOW_S);
	json_t *header = json_pack("{s:s,s:s}", "alg", "HS256", "kid", "k1");
	struct buf token = BUF_INIT(16 << 10);
	uint8_t mac[SHA256_BYTES];

	(void)state;
	append_part(&token, header);
	buf_append_char(&token, '.');
	append_part(&token, claims);
	hmac_sha256(pem, strlen(pem), token.data, token.len, mac);
	buf_append_char(&token, '.');
	base64url_encode(mac, sizeof mac, &token);
	assert_int_equal(verify(buf_str(&token), NULL, "RS256"), ERR_AUTH);
	buf_release(&token);
	json_decref(header);
	json_decref(claims);
	free(pem);
}

static void test_refuses_malformed_tokens(void **state)
{
	static const char *const wrong[] = {"", ".", "..", "...", "a.b.c", "e30.e30.e30", "e30.e30.", "oct1.x.y.z"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(
		    oidc_verify(&config, wrong[i], NOW_S * 1000, find_key, NULL, &(struct oidc_caller){0}, NULL),
		    ERR_AUTH);
}

static void test_mapped_pipelines(void **state)
{
	static const struct {
		const char *organization, *pipeline, *branch;
		int number, err;
		const char *why;
	} table[] = {
	    {ORG, PIPE, "main", 7, 0, NULL},
	    {ORG, PIPE, "release", 7, 0, NULL},
	    {ORG, PIPE, "main", 8, ERR_DENIED, "build_number"},
	    {ORG, PIPE, "fork", 7, ERR_DENIED, "build_branch"},
	    {ORG, PIPE, NULL, 7, ERR_DENIED, "build_branch"},
	    {ORG, "x", "main", 7, ERR_DENIED, "mapped"},
	    {"x", PIPE, "main", 7, ERR_DENIED, "mapped"},
	    {NULL, PIPE, "main", 7, ERR_DENIED, "mapped"},
	    {"", ORG "/" PIPE, "main", 7, ERR_DENIED, "mapped"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		json_t *claims = good_claims(NOW_S); /* its `repository` must be ignored */
		char *token;

		json_object_set_new(claims, "iss", json_string(BUILDKITE));
		json_set_str(claims, "organization_id", table[i].organization);
		json_set_str(claims, "pipeline_id", table[i].pipeline);
		json_set_str(claims, "build_branch", table[i].branch);
		json_set_int(claims, "build_number", table[i].number);
		token = mint(&key, "k1", claims);
		assert_int_equal(verify(token, "vllm-project/vllm", table[i].why), table[i].err);
		free(token);
		json_decref(claims);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_accepts_a_good_token),
	    cmocka_unit_test(test_claims),
	    cmocka_unit_test(test_headers),
	    cmocka_unit_test(test_signatures),
	    cmocka_unit_test(test_refuses_hs256_with_the_public_key),
	    cmocka_unit_test(test_refuses_malformed_tokens),
	    cmocka_unit_test(test_mapped_pipelines),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
