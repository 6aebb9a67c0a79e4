/* Which entries of a commit's tree are written to disk, and which refuse the commit. */
#include "registry_repo.h"

#include <dirent.h>
#include <ftw.h>

#include "registry/fetch.h"

static char folder[64];
static git_repository *repo;

static int setup(void **state)
{
	char *path;
	struct error e = {0};

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/outpost-checkout-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(fetch_setup(&e), 0);
	path = path_join(folder, "repo.git");
	assert_int_equal(git_repository_init(&repo, path, 1), 0);
	free(path);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	git_repository_free(repo);
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes the commit's `path` into the folder "out". messages: the reasons for a refusal. */
static int check_out(git_oid commit, const char *path, struct buf *messages)
{
	struct error e = {0};
	struct checkout c = {
	    .repo = repo, .commit = commit, .path = path, .root = folder, .name = "out", .mistakes = messages};

	return checkout_write(&c, &e);
}

/* Names in the folder "out", in no order; "none" when it is not there. */
static int count_written(void)
{
	char *path = path_join(folder, "out");
	DIR *d = opendir(path);
	int n = -2;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	free(path);
	return d ? n : -1;
}

static void expect_refused(const struct repo_entry *list, size_t n, const char *why)
{
	struct buf messages = BUF_INIT(65536);

	assert_int_equal(check_out(repo_commit(repo, list, n), "accelerators.d", &messages), ERR_INVALID);
	if (!strstr(buf_str(&messages), why))
		fail_msg("not %s in: %s", why, buf_str(&messages));
	assert_int_equal(strncmp(buf_str(&messages), "accelerators.git@", 17), 0);
	assert_int_equal(count_written(), -1);
	buf_release(&messages);
}

static void plain_files_are_written(void **state)
{
	struct buf messages = BUF_INIT(65536), text = BUF_INIT(100);
	struct error e = {0};
	struct repo_entry list[] = {
	    repo_file(repo, ".hidden.yml", "x"),
	    repo_file(repo, "README", "x"),
	    repo_file(repo, "a.yml", "name: a\n"),
	    repo_file(repo, "b.yml", ""),
	    {0120000, "link", repo_blob(repo, "/etc", 4)},
	};
	char *path = xasprintf("%s/out/a.yml", folder);
	struct stat st;

	(void)state;
	list[2].mode = 0100755;
	assert_int_equal(check_out(repo_commit(repo, list, 5), "accelerators.d", &messages), 0);
	assert_int_equal(messages.len, 0);
	assert_int_equal(count_written(), 2);
	assert_int_equal(file_read(path, &text, &e), 0);
	assert_string_equal(buf_str(&text), "name: a\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	buf_release(&text);
	free(path);
}

static void odd_entries_refuse_the_commit(void **state)
{
	git_oid blob = repo_blob(repo, "x", 1);
	const struct {
		struct repo_entry entry;
		const char *why;
	} table[] = {
	    {{0120000, "x.yml", blob}, "x.yml:1: a symbolic link"},
	    {{0160000, "x.yml", blob}, "x.yml:1: a submodule"},
	    {{0100644, "x.yaml", blob}, "x.yaml:1: only *.yml"},
	    {{0100644, "../x.yml", blob}, "../x.yml:1: the name"},
	    {{0100644, "..", blob}, ":1: the name"},
	    {{0100644, "/etc/x.yml", blob}, ":1: the name"},
	    {{0100644, "sub/x", blob}, ":1: the name"},
	    {{0100644, "-x.yml", blob}, ":1: the name"},
	    {{0100644, "x\n.yml", blob}, ":1: the name"},
	    {{0100644, "x\xff.yml", blob}, ":1: the name"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		expect_refused(&table[i].entry, 1, table[i].why);
}

static void all_mistakes_are_listed(void **state)
{
	struct buf messages = BUF_INIT(65536);
	git_oid blob = repo_blob(repo, "x", 1);
	struct repo_entry list[] = {
	    {0100644, "a.yml", blob}, {0120000, "b.yml", blob}, {0100644, "c.yaml", blob}, {0100644, "a.yml", blob}};

	(void)state;
	assert_int_equal(check_out(repo_commit(repo, list, 4), "accelerators.d", &messages), ERR_INVALID);
	assert_non_null(strstr(buf_str(&messages), "/b.yml:1: a symbolic link"));
	assert_non_null(strstr(buf_str(&messages), "/c.yaml:1: only"));
	assert_non_null(strstr(buf_str(&messages), "/a.yml:1: a second file"));
	assert_int_equal(count_written(), -1);
	buf_release(&messages);
}

static void sizes_are_bounded(void **state)
{
	char *big = xmalloc(256 * 1024 + 1), names[1001][16];
	struct repo_entry list[1001];
	struct buf messages = BUF_INIT(65536);

	(void)state;
	memset(big, 'x', 256 * 1024 + 1);
	list[0] = (struct repo_entry){0100644, "x.yml", repo_blob(repo, big, 256 * 1024 + 1)};
	expect_refused(list, 1, "x.yml:1: larger than 256 KiB");
	for (size_t i = 0; i < 1001; i++) {
		snprintf(names[i], sizeof(names[i]), "x%zu.yml", i);
		list[i] = (struct repo_entry){0100644, names[i], repo_blob(repo, "x", 1)};
	}
	expect_refused(list, 1001, "more than 1000 files");
	list[0].id = repo_blob(repo, big, 256 * 1024);
	assert_int_equal(check_out(repo_commit(repo, list, 1000), "accelerators.d", &messages), 0);
	assert_int_equal(count_written(), 1000);
	free(big);
}

static void the_folder_must_exist(void **state)
{
	static const char *const paths[] = {"elsewhere", "accelerators.d/x.yml", "accelerators.d/sub"};
	git_oid commit = repo_commit_text(repo, "x.yml", "x");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct buf messages = BUF_INIT(65536);

		assert_int_equal(check_out(commit, paths[i], &messages), ERR_INVALID);
		assert_non_null(strstr(buf_str(&messages), "no such folder"));
		buf_release(&messages);
	}
}

/* Missing objects are a problem of this machine, not a mistake in the commit. */
static void a_missing_object_does_not_refuse_the_commit(void **state)
{
	struct buf messages = BUF_INIT(65536);
	struct repo_entry file = {0100644, "x.yml", {{1, 2, 3}}};

	(void)state;
	assert_int_equal(check_out(repo_commit(repo, &file, 1), "accelerators.d", &messages), ERR_CORRUPT);
	assert_int_equal(messages.len, 0);
	assert_int_equal(count_written(), -1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(plain_files_are_written),
	    TEST(odd_entries_refuse_the_commit),
	    TEST(all_mistakes_are_listed),
	    TEST(sizes_are_bounded),
	    TEST(the_folder_must_exist),
	    TEST(a_missing_object_does_not_refuse_the_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
