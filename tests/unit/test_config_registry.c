/* The files of accelerators.git: Outpost reads them from its checkout, and messages name them as the repository does. */
#include "config_folder.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define FOLDER "state/registry/" COMMIT "-0a0b0c0d"
#define WITH_GIT                                                                                                       \
	MINIMAL_YML                                                                                                    \
	"accelerators:\n  git: {url: 'https://github.com/fdn/registry.git', path: a/b}\n"
#define NPU                                                                                                            \
	"name: npu\ntitle: NPU\nlevel: L2\nrunners:\n"                                                                 \
	"  - {name: lab, webhook: {url: 'https://ci.example.org/hook', secret: hook}}\n"

static char *find(const char *state_dir)
{
	assert_string_equal(state_dir, "state");
	return xstrdup(FOLDER);
}

static char *find_none(const char *state_dir)
{
	(void)state_dir;
	return NULL;
}

static int load(const struct registry_files *files, struct config **ret, const char *expected)
{
	struct buf messages = BUF_INIT(1 << 20);
	int rc = config_load_with("outpost.yml", files, ret, &messages);

	assert_string_equal(buf_str(&messages), expected);
	buf_release(&messages);
	return rc;
}

static void reads_the_folder(void **state)
{
	const struct registry_files by_name = {.folder = FOLDER, .find = find_none}, found = {.find = find};
	struct config *c;

	(void)state;
	folder_write("outpost.yml", WITH_GIT);
	folder_write(FOLDER "/npu.yml", NPU);
	folder_write("secrets/npu/hook", "a secret\n");
	assert_int_equal(load(&by_name, &c, ""), 0);
	assert_int_equal(c->n_accelerators, 1);
	assert_string_equal(c->accelerators_git_commit, COMMIT);
	assert_string_equal(c->accelerators_git_folder, FOLDER);
	assert_string_equal(c->accelerators[0].file, "accelerators.git@0123456:a/b/npu.yml");
	assert_int_equal(secret_bytes(c->accelerators[0].runners[0].secret), 8);
	assert_true(config_is_registry_loaded(c));
	config_unref(c);
	assert_int_equal(load(&found, &c, ""), 0);
	assert_int_equal(c->n_accelerators, 1);
	config_unref(c);
}

static void registry_is_not_loaded_before_the_first_fetch(void **state)
{
	const struct registry_files none = {.find = find_none};
	struct config *c;

	(void)state;
	folder_write("outpost.yml", WITH_GIT);
	assert_int_equal(load(&none, &c, ""), 0);
	assert_int_equal(c->n_accelerators, 0);
	assert_null(c->accelerators_git_commit);
	assert_false(config_is_registry_loaded(c));
	config_unref(c);
	assert_int_equal(load(NULL, &c, ""), 0);
	assert_false(config_is_registry_loaded(c));
	config_unref(c);
}

static void mistakes_name_the_files_of_the_repository(void **state)
{
	const struct registry_files found = {.find = find};
	struct config *c;

	(void)state;
	folder_write("outpost.yml", WITH_GIT);
	folder_write(FOLDER "/npu.yml", NPU);
	folder_write(FOLDER "/same.yml", "name: npu\ntitle: NPU\nlevel: L2\nrunners: []\n");
	assert_int_equal(load(&found, &c,
			     "accelerators.git@0123456:a/b/npu.yml:5: cannot read "
			     "secrets/npu/hook: No such file or directory\n"
			     "accelerators.git@0123456:a/b/same.yml:1: runners is missing, and outpost.yml has "
			     "no infra.repository to run it\n"
			     "accelerators.git@0123456:a/b/same.yml:1: the name \"npu\" is taken by "
			     "accelerators.git@0123456:a/b/npu.yml:1\n"),
	    ERR_INVALID);
	assert_null(c);
}

static void registry_folder_is_unset_without_git(void **state)
{
	const struct registry_files found = {.folder = FOLDER, .find = find};
	struct config *c;

	(void)state;
	assert_int_equal(load(&found, &c, ""), 0);
	assert_null(c->accelerators_git_folder);
	assert_true(config_is_registry_loaded(c));
	config_unref(c);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(reads_the_folder),
	    TEST(registry_is_not_loaded_before_the_first_fetch),
	    TEST(mistakes_name_the_files_of_the_repository),
	    TEST(registry_folder_is_unset_without_git),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
