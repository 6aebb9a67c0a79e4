/* Submodules come once from the network, whatever .gitmodules says of them is a stranger's, and
 * what a step does to its work tree no other job sees. */
#include "git_rig.h"

#include "steps/submodule_list.h"

static const char *sub_url(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "%.*s/sub", (int)(strrchr(url, '/') - url), url);
	return text;
}

/* Adds one to a work tree that is served, and takes the commit for the job. */
static void add_module(const char *folder, const char *from, const char *path)
{
	char *add =
	    xasprintf("git -c protocol.file.allow=always submodule add -q '%s' '%s'", from, path);

	shell(folder, add, NULL);
	commit(folder, "with a submodule");
	shell(origin, "git rev-parse HEAD", sha);
	rig_config.git_submodules = true;
	free(add);
}

static void test_second_job_fetches_nothing(void **state)
{
	const char *from = sub_url();
	int asked;

	(void)state;
	add_module(origin, from, "third party/one");
	add_module(origin, from, "two");
	asked = git_asked("sub");
	rig_step("look", "cat 'third party/one/file' two/file; git submodule status; git status -s",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\nfirst\n ");
	rig_assert_log_has(" two (");
	rig_assert_log_lacks(" M ");
	assert_int_equal(git_asked("sub"), asked + 1);
	asked = git_asked("origin");
	next_job();
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\nfirst\n ");
	assert_int_equal(git_asked("sub") + git_asked("origin"), 3 + asked);
	/* another commit of the main repository, the same of the submodule */
	next_job();
	commit(origin, "newer");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_int_equal(git_asked("origin"), asked + 1);
}

static void test_nested_and_relative(void **state)
{
	const char *from = sub_url();
	char *deep = make_repository("deep");

	(void)state;
	shell(sub,
	    "printf '[submodule \"a.b\"]\\n path = x/deep\\n url = ../deep\\n' > .gitmodules",
	    NULL);
	shell(sub,
	    "git add -A && git update-index --add --cacheinfo "
	    "160000,$(git -C ../deep rev-parse HEAD),x/deep && git commit -qm nested",
	    NULL);
	add_module(origin, from, "third");
	rig_step("look", "cat third/x/deep/file; git submodule status --recursive", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\n ");
	rig_assert_log_has(" third/x/deep (");
	free(deep);
}

/* A change cannot make us read this machine's files as a submodule, nor run what it names. */
static void test_hostile_urls(void **state)
{
	static const char *const urls[] = {"/etc", "file:///etc", "ext::sh -c id", "-u", "git@h:x",
	    "ssh://-oProxyCommand=id/x", "../../../../../etc", "", "http://a b/"};

	(void)state;
	add_module(origin, sub, "third");
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "is not fetched: only https, http");
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		char *got = submodule_url("https://h/o/r", "https://h/o/r", urls[i]);

		if (got && strcmp(urls[i], "../../../../../etc") != 0)
			fail_msg("%s gives %s", urls[i], got);
		if (got && (!str_has_prefix(got, "http") || strstr(got, "file")))
			fail_msg("%s gives %s", urls[i], got);
		free(got);
	}
}

static void test_urls(void **state)
{
	static const char *const cases[][4] = {
	    /* git_url, parent, written, wanted */
	    {"https://h/o/r.git", "https://h/o/r.git", "../s.git", "https://h/o/s.git"},
	    {"https://h/o/r.git", "https://h/o/r.git/", "./../../p/s", "https://h/p/s"},
	    {"https://h/o/r", "https://h/o/r", "https://e/x", "https://e/x"},
	    {"https://h/o/r", "https://h/o/r", "git://e/x", NULL},
	    {"https://h/o/r", "https://h/o/r", "ssh://git@e/x", NULL},
	    {"ssh://git@h/o/r", "ssh://git@h/o/r", "../s", "ssh://git@h/o/s"},
	    {"git@h:o/r", "git@h:o/r", "../s", "git@h:o/s"},
	    {"git@h:o/r", "git@h:o/r", "../../s", "git@h:s"},
	    {"git@h:o/r", "git@h:o/r", "../../../s", NULL},
	    {"/srv/git/r", "/srv/git/r", "../s", NULL},
	    {"file:///srv/git/r", "file:///srv/git/r", "../s", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *got = submodule_url(cases[i][0], cases[i][1], cases[i][2]);

		if (!str_eq(got, cases[i][3]))
			fail_msg("%s from %s: %s", cases[i][2], cases[i][1], got ? got : "none");
		free(got);
	}
}

/* Places that are not the tree's, commands instead of URLs, names that are paths. */
static void test_hostile_gitmodules(void **state)
{
	const char *from = sub_url();
	char *text;

	(void)state;
	add_module(origin, from, "third");
	text = xasprintf("printf '[submodule \"../../x\"]\\n path = ../../escaped\\n url = %s\\n"
			 "[submodule \"b\"]\\n path = .git/hooks\\n url = %s\\n"
			 "[submodule \"third\"]\\n path = third\\n url = %s\\n"
			 "[core]\\n fsmonitor = touch ran\\n' > .gitmodules",
	    from, from, from);
	shell(origin, text, NULL);
	free(text);
	commit(origin, "hostile");
	shell(origin, "git rev-parse HEAD", sha);
	rig_step("look",
	    "cat third/file; find . -name ran; git config core.fsmonitor || echo no fsmonitor",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\nno fsmonitor\n");
	shell(rig_dir, "! find . -name escaped | grep .", NULL);
	/* a command to run: git refuses such a file as a whole */
	next_job();
	shell(origin, "git config -f .gitmodules submodule.third.update '!touch ran'", NULL);
	commit(origin, "with a command");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("startup_failure", "invalid value for 'submodule.third.update'");
	shell(rig_dir, "! find . -name ran | grep .", NULL);
}

static void test_what_is_left_out(void **state)
{
	const char *from = sub_url();

	(void)state;
	add_module(origin, from, "third");
	shell(origin, "git config -f .gitmodules submodule.third.update none", NULL);
	commit(origin, "left out");
	shell(origin, "git rev-parse HEAD", sha);
	rig_step("look", "ls third | wc -l", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\n0\n");
}

/* The commit is gone from where it was: no other takes its place. */
static void test_commit_that_is_gone(void **state)
{
	const char *from = sub_url();

	(void)state;
	add_module(origin, from, "third");
	shell(sub,
	    "git commit -q --amend -m other && git reflog expire --expire=now --all && git gc -q "
	    "--prune=now",
	    NULL);
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "submodule third: commit ");
	rig_assert_conclusion("startup_failure", "HEAD is at ");
}

static void test_damaged_mirror(void **state)
{
	const char *from = sub_url();

	(void)state;
	add_module(origin, from, "third");
	rig_step("look", "cat third/file", MINUTE_MS);
	rig_run();
	next_job();
	shell(rig_dir,
	    "for f in $(find mirror/modules/*/objects -type f); do chmod u+w $f; : > $f; done",
	    NULL);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("the local mirror is damaged");
	rig_assert_log_has("\nfirst\n");
}

/* A step may do to its work tree what it likes: the next job finds what git fetched. */
static void test_step_cannot_poison_the_next(void **state)
{
	const char *from = sub_url();

	(void)state;
	if (system("bwrap --ro-bind / / --unshare-all true") != 0)
		skip();
	add_module(origin, from, "third");
	rig_config.sandbox = SANDBOX_BUBBLEWRAP;
	rig_step("poison",
	    "cat third/file; cd third; m=$(cat .git/objects/info/alternates); echo evil > file; "
	    "git -c user.name=x -c user.email=x commit -qam evil; "
	    "for f in $m/x $m/../config $m/../hooks/post-checkout $m/../../x.git; do "
	    "(mkdir -p $m/../hooks; echo evil > $f) 2>/dev/null && echo WROTE $f; done; "
	    "chmod -R u+w $m 2>/dev/null; rm -rf $m 2>/dev/null; git config core.hooksPath /x; "
	    "true",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_lacks("\nWROTE");
	next_job();
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_second_job_fetches_nothing),
	    TEST(test_nested_and_relative), TEST(test_hostile_urls), cmocka_unit_test(test_urls),
	    TEST(test_hostile_gitmodules), TEST(test_what_is_left_out),
	    TEST(test_commit_that_is_gone), TEST(test_damaged_mirror),
	    TEST(test_step_cannot_poison_the_next)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
