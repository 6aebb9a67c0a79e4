/* CRCR's ci_providers.yml, read unchanged beside outpost.yml's issuers. */
#include "config_folder.h"

#define GITHUB_YML                                                                                                     \
	"public_url: http://127.0.0.1:9\nstate_dir: state\n"                                                           \
	"github:\n  app_id: 1\n  private_key_file: key.pem\n  webhook_secret_file: webhook\n"
#define WITH_FILE GITHUB_YML "  oidc:\n    ci_providers: ci.yml\n"
#define WITH_BOTH                                                                                                      \
	WITH_FILE "    issuers:\n"                                                                                     \
		  "      - issuer: https://agent.buildkite.com\n"                                                      \
		  "        jwks_url: https://agent.buildkite.com/.well-known/jwks\n"

static int setup(void **state)
{
	folder_setup(state);
	folder_write("outpost.yml", WITH_FILE);
	return 0;
}

/* As pytorch/test-infra has it since 2026-09: pipelines by immutable ids, and the flat section for older relays. */
static void test_todays_file(void **state)
{
	const struct oidc_issuer *issuer;
	struct config *c;

	(void)state;
	folder_write("ci.yml", "# a comment\n"
			       "providers:\n"
			       "  buildkite:\n"
			       "    repo_map:\n"
			       "      018b5ec5-c236-4037-ba08-d8a5d29bcdae/018cdabc-d930-49f6-9085-634c4cb582ed:\n"
			       "        repo: vllm-project/vllm\n"
			       "        required_claims:\n"
			       "          build_branch: [main, nightly]\n"
			       "          build_source: schedule\n"
			       "      o/p: org/plain\n"
			       "\n"
			       "buildkite:\n"
			       "  x/y: org/other\n");
	c = folder_load();
	assert_int_equal(c->n_oidc_issuers, 2);
	assert_string_equal(c->oidc_issuers[0].issuer, "https://token.actions.githubusercontent.com");
	issuer = &c->oidc_issuers[1];
	assert_string_equal(issuer->issuer, "https://agent.buildkite.com");
	assert_string_equal(issuer->jwks_url, "https://agent.buildkite.com/.well-known/jwks");
	assert_int_equal(issuer->n_mappings, 2);
	assert_string_equal(
	    issuer->mappings[0].key, "018b5ec5-c236-4037-ba08-d8a5d29bcdae/018cdabc-d930-49f6-9085-634c4cb582ed");
	assert_string_equal(issuer->mappings[0].repository, "vllm-project/vllm");
	assert_int_equal(issuer->mappings[0].n_claims, 2);
	assert_string_equal(issuer->mappings[0].claims[0].values[1], "nightly");
	assert_string_equal(issuer->mappings[0].claims[1].name, "build_source");
	assert_string_equal(issuer->mappings[0].claims[1].values[0], "schedule");
	assert_string_equal(issuer->mappings[1].repository, "org/plain");
	assert_int_equal(issuer->mappings[1].n_claims, 0);
	config_unref(c);
}

static void test_older_files(void **state)
{
	static const char *const empty[] = {
	    "", "providers:\n", "providers: {buildkite: }\n", "providers: {buildkite: {repo_map: }}\n", "buildkite:\n"};
	struct config *c;

	(void)state;
	folder_write("ci.yml", "providers:\n"
			       "  github:\n"
			       "    issuer: https://token.actions.githubusercontent.com\n"
			       "    jwks_uri: https://token.actions.githubusercontent.com/.well-known/jwks\n"
			       "  buildkite:\n"
			       "    issuer: https://agent.buildkite.com\n"
			       "    jwks_uri: https://agent.buildkite.com/.well-known/jwks\n"
			       "    repo_map:\n"
			       "buildkite:\n"
			       "  x/y: org/flat\n");
	c = folder_load();
	assert_string_equal(c->oidc_issuers[1].mappings[0].repository, "org/flat");
	config_unref(c);
	/* The tokens of an issuer without mappings would name their own repository, so such an issuer is not created. */
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		folder_write("ci.yml", empty[i]);
		c = folder_load();
		assert_int_equal(c->n_oidc_issuers, 1);
		config_unref(c);
	}
}

static void test_beside_the_issuers(void **state)
{
	struct config *c;

	(void)state;
	folder_write("ci.yml", "providers: {buildkite: {repo_map: {a/b: o/file}}}\n");
	folder_write("outpost.yml", WITH_BOTH "        repositories: {c/d: {repository: o/main}}\n");
	c = folder_load();
	assert_int_equal(c->n_oidc_issuers, 1);
	assert_int_equal(c->oidc_issuers[0].n_mappings, 2);
	assert_string_equal(c->oidc_issuers[0].mappings[0].repository, "o/main");
	assert_string_equal(c->oidc_issuers[0].mappings[1].repository, "o/file");
	config_unref(c);
	folder_write("outpost.yml", WITH_BOTH "        repositories: {a/b: {repository: o/main}}\n");
	folder_expect("outpost.yml:8: pipeline \"a/b\" is in github.oidc.issuers and in "
		      "github.oidc.ci_providers\n");
	folder_write("outpost.yml", WITH_BOTH);
	folder_expect("outpost.yml:8: github.oidc.ci_providers maps pipelines of "
		      "https://agent.buildkite.com, but github.oidc.issuers lists it without repositories\n");
}

static const struct {
	const char *text, *expected;
} WRONG[] = {
    {"- a\n", "ci.yml:1: the file must be a map, not a list\n"},
    {"provider: {}\n", "ci.yml:1: unknown key \"provider\"; the file has providers\n"},
    {"providers: [a]\n", "ci.yml:1: providers must be a map, not a list\n"},
    {"providers:\n  gitlab: {}\n", "ci.yml:2: unknown provider \"gitlab\"; known are github and buildkite\n"},
    {"providers:\n  buildkite:\n    repo_map:\n      a: o/r\n",
	"ci.yml:4: a pipeline must be ORGANIZATION_ID/PIPELINE_ID, not \"a\"\n"},
    {"providers:\n  buildkite:\n    repo_map: {a/b: o}\n",
	"ci.yml:3: a pipeline's repository must be owner/name, not \"o\"\n"},
    {"providers:\n  buildkite:\n    repo_map: [a/b]\n", "ci.yml:3: repo_map must be a map, not a list\n"},
    {"providers:\n  buildkite:\n    repo_map:\n      a/b:\n        required_claims: {x: y}\n",
	"ci.yml:4: repo is missing\n"},
    {"providers: {buildkite: {repo_map: {a/b: {repo: o/r, claims: 1}}}}\n",
	"ci.yml:1: unknown key \"claims\"; a pipeline has repo and required_claims\n"},
    {"providers: {buildkite: {repo_map: {a/b: {repo: o/r, required_claims: {x: []}}}}}\n",
	"ci.yml:1: a required claim must have a value; no token can match an empty list\n"},
    {"providers: {buildkite: {repo_map: {a/b: {repo: o/r, required_claims: [x]}}}}\n",
	"ci.yml:1: required_claims must be a map, not a list\n"},
    {"providers:\n  buildkite:\n    issuer: https://evil.example\n",
	"ci.yml:3: \"issuer\" must be https://agent.buildkite.com: add another issuer to "
	"github.oidc.issuers in outpost.yml\n"},
    {"providers:\n  github:\n    repo_map: {}\n",
	"ci.yml:3: unknown key \"repo_map\"; a provider has issuer, jwks_uri\n"},
    {"providers:\n  buildkite:\n    repo_map: {a/b: o/r}\n  buildkite:\n    repo_map: {c/d: o/r}\n",
	"ci.yml:4: key \"buildkite\" is given twice; the first is in line 2\n"},
    {"buildkite:\n  a: o/r\n", "ci.yml:2: a pipeline must be ORGANIZATION_ID/PIPELINE_ID, not \"a\"\n"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
		folder_write("ci.yml", WRONG[i].text);
		folder_expect(WRONG[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, folder_teardown)
	    T(test_todays_file),
	    T(test_older_files),
	    T(test_beside_the_issuers),
	    T(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
