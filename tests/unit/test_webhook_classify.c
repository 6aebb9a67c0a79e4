#include <setjmp.h>

#include <cmocka.h>

#include "webhook/payload.h"

#define REPO "\"repository\":{\"full_name\":\"pytorch/pytorch\"}"

static char *branches[] = {(char[]){"main"}, (char[]){"release/2.9"}, NULL};
static const struct config config = {
    .upstream_repository = (char[]){"PyTorch/pytorch"},
    .upstream_branches = branches,
};

static const struct {
	const char *event, *body;
	enum webhook_class class;
	const char *reason; /* a part of it */
} table[] = {
    {"ping", "{\"zen\":\"z\"}", WEBHOOK_PONG, NULL},
    {"pull_request", "{\"action\":\"opened\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"reopened\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"synchronize\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"ready_for_review\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"labeled\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"unlabeled\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"converted_to_draft\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"closed\"," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"edited\",\"changes\":{\"base\":{}}," REPO "}", WEBHOOK_USED, NULL},
    {"pull_request", "{\"action\":\"edited\",\"changes\":{\"title\":{}}," REPO "}", WEBHOOK_IGNORED, "not its base"},
    {"pull_request", "{\"action\":\"assigned\"," REPO "}", WEBHOOK_IGNORED, "action"},
    {"pull_request", "{" REPO "}", WEBHOOK_IGNORED, "action"},
    {"pull_request", "{\"action\":\"opened\",\"repository\":{\"full_name\":\"a/b\"}}", WEBHOOK_IGNORED, "upstream"},
    {"pull_request", "{\"action\":\"opened\"}", WEBHOOK_IGNORED, "upstream"},
    {"push", "{\"ref\":\"refs/heads/main\",\"deleted\":false," REPO "}", WEBHOOK_USED, NULL},
    {"push", "{\"ref\":\"refs/heads/release/2.9\"," REPO "}", WEBHOOK_USED, NULL},
    {"push", "{\"ref\":\"refs/heads/main\",\"deleted\":true," REPO "}", WEBHOOK_IGNORED, "deleted"},
    {"push", "{\"ref\":\"refs/heads/Main\"," REPO "}", WEBHOOK_IGNORED, "listed"},
    {"push", "{\"ref\":\"refs/heads/\"," REPO "}", WEBHOOK_IGNORED, "listed"},
    {"push", "{\"ref\":\"refs/tags/main\"," REPO "}", WEBHOOK_IGNORED, "branch"},
    {"push", "{" REPO "}", WEBHOOK_IGNORED, "branch"},
    {"check_run", "{\"action\":\"rerequested\"," REPO "}", WEBHOOK_USED, NULL},
    {"check_run", "{\"action\":\"created\"," REPO "}", WEBHOOK_IGNORED, "action"},
    {"check_suite", "{\"action\":\"rerequested\"," REPO "}", WEBHOOK_USED, NULL},
    {"check_suite", "{\"action\":\"requested\"," REPO "}", WEBHOOK_IGNORED, "action"},
    {"issue_comment", "{\"action\":\"created\",\"issue\":{\"pull_request\":{}}," REPO "}", WEBHOOK_USED, NULL},
    {"issue_comment", "{\"action\":\"created\",\"issue\":{}," REPO "}", WEBHOOK_IGNORED, "issue"},
    {"issue_comment", "{\"action\":\"edited\",\"issue\":{\"pull_request\":{}}," REPO "}", WEBHOOK_IGNORED, "action"},
    {"installation", "{\"action\":\"created\"}", WEBHOOK_USED, NULL},
    {"installation_repositories", "{\"action\":\"added\"}", WEBHOOK_USED, NULL},
    {"installation_target", "{\"action\":\"renamed\"}", WEBHOOK_USED, NULL},
    {"star", "{\"action\":\"created\"," REPO "}", WEBHOOK_IGNORED, "event"},
    {"PUSH", "{\"ref\":\"refs/heads/main\"," REPO "}", WEBHOOK_IGNORED, "event"},
    {"", "{}", WEBHOOK_IGNORED, "event"},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *reason;
		struct skim s;
		int err = skim(table[i].body, strlen(table[i].body), &s, NULL);

		assert_int_equal(err, 0);
		if (webhook_classify(table[i].event, &s, &config, &reason) != table[i].class)
			fail_msg("%s %s: %s", table[i].event, table[i].body, reason ? reason : "used");
		if (table[i].reason)
			assert_non_null(strstr(reason, table[i].reason));
		else
			assert_null(reason);
	}
}

static bool is_registry_push(const char *url, const char *repository, const char *ref)
{
	const struct config c = {.accelerators_git_url = (char *)url, .accelerators_git_branch = (char[]){"main"}};
	struct skim s = {0};

	snprintf(s.repository, sizeof(s.repository), "%s", repository);
	snprintf(s.ref, sizeof(s.ref), "%s", ref);
	return webhook_is_registry_push("push", &s, &c);
}

static void test_registry_push(void **state)
{
	static const char *const urls[] = {"https://github.com/Fdn/registry.git", "https://github.com/fdn/registry",
	    "https://github.com/fdn/registry.git/", "https://ghe.example.org:8443/FDN/Registry/"};
	static const char *const others[] = {"https://github.com/fdn/registry2", "https://github.com/x/fdn/registry",
	    "https://github.com/fdn", "https://github.com/", "https://github.com", "https://github.com/.git",
	    "https://fdn/registry.git"};
	struct skim deleted = {.repository = "fdn/registry", .ref = "refs/heads/main", .is_deleted = true};
	struct config c = {.accelerators_git_url = (char *)urls[0], .accelerators_git_branch = (char[]){"main"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		assert_true(is_registry_push(urls[i], "fdn/registry", "refs/heads/main"));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(is_registry_push(others[i], "fdn/registry", "refs/heads/main"));
	assert_false(is_registry_push(urls[0], "", "refs/heads/main"));
	assert_false(is_registry_push(others[4], "", "refs/heads/main"));
	assert_false(is_registry_push(urls[0], "fdn/registry", "refs/heads/main2"));
	assert_false(is_registry_push(urls[0], "fdn/registry", "refs/tags/main"));
	assert_false(is_registry_push(NULL, "fdn/registry", "refs/heads/main"));
	assert_false(webhook_is_registry_push("push", &deleted, &c));
	deleted.is_deleted = false;
	assert_true(webhook_is_registry_push("push", &deleted, &c));
	assert_false(webhook_is_registry_push("pull_request", &deleted, &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_registry_push),
	    cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
