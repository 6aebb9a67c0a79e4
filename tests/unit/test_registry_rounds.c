/* Which commit is active: from the first fetch and refusals to a restart without a network. */
#include "registry_rig.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

static bool is_in_force(struct rig *g)
{
	return str_eq(registry_status(g->registry)->commit, g->tried) && g->n_tried > 0;
}

static bool is_refused(struct rig *g) { return registry_status(g->registry)->refused[0] != '\0'; }

static bool is_nothing_refused(struct rig *g) { return !is_refused(g); }

static bool has_failed(struct rig *g) { return registry_status(g->registry)->fetch_error != NULL; }

static bool is_tried_twice(struct rig *g) { return g->n_tried == 2; }

/* A restart begins with the commit that was tried last. */
static bool is_kept(struct rig *g)
{
	char *folder = registry_folder(g->state_dir);
	bool is_it = folder && str_eq(folder, g->tried_folder);

	free(folder);
	return is_it;
}

static void take_first(struct rig *g, const char *text)
{
	repo_commit_text(g->repo, "npu.yml", text);
	rig_open_registry(g);
	rig_until(g, is_in_force);
	rig_until(g, is_kept);
}

static void expect_file(const char *folder, const char *name, const char *expected)
{
	struct buf text = BUF_INIT(4096);
	struct error e = {0};
	char *path = path_join(folder, name);

	assert_int_equal(file_read(path, &text, &e), 0);
	assert_string_equal(buf_str(&text), expected);
	buf_release(&text);
	free(path);
}

static int count_entries(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n - 2;
}

static void test_first_fetch(void **state)
{
	struct rig *g = *state;
	char *root = path_join(g->state_dir, "registry");
	int n;

	assert_null(registry_folder(g->state_dir));
	take_first(g, "name: npu\n");
	expect_file(g->tried_folder, "npu.yml", "name: npu\n");
	assert_true(registry_status(g->registry)->fetched_wall_ms > 0);
	assert_true(registry_status(g->registry)->commit_wall_ms > 0);
	assert_null(registry_status(g->registry)->fetch_error);
	rig_close_registry(g);
	n = count_entries(root);
	free(root);
	assert_int_equal(n, 3); /* repo.git, good, the checkout */
}

static void test_next_commit(void **state)
{
	struct rig *g = *state;
	char *root = path_join(g->state_dir, "registry");
	git_oid second;
	int n;

	take_first(g, "one");
	second = repo_commit_text(g->repo, "npu.yml", "two");
	registry_fetch(g->registry);
	registry_fetch(g->registry);
	rig_until(g, is_tried_twice);
	rig_until(g, is_kept);
	assert_string_equal(registry_status(g->registry)->commit, git_oid_tostr_s(&second));
	expect_file(g->tried_folder, "npu.yml", "two");
	rig_close_registry(g);
	n = count_entries(root);
	free(root);
	assert_int_equal(n, 3); /* the first one's folder was removed */
}

static void test_refused_commit_is_not_used(void **state)
{
	struct rig *g = *state;
	char *first;
	git_oid second;

	take_first(g, "one");
	first = xstrdup(g->tried);
	g->refuse_with = "accelerators.git@1234567:accelerators.d/npu.yml:1: wrong\n";
	second = repo_commit_text(g->repo, "npu.yml", "two");
	registry_fetch(g->registry);
	rig_until(g, is_refused);
	assert_string_equal(registry_status(g->registry)->commit, first);
	assert_string_equal(registry_status(g->registry)->refused, git_oid_tostr_s(&second));
	assert_string_equal(registry_status(g->registry)->refused_why, g->refuse_with);
	assert_false(is_kept(g));

	assert_int_equal(g->n_tried, 2);
	free(first);
}

static bool is_fetched_again(struct rig *g)
{
	static int64_t before;
	int64_t now = registry_status(g->registry)->fetched_wall_ms;

	if (!before)
		before = now;
	if (now == before)
		registry_fetch(g->registry);
	return now != before;
}

static void test_refused_is_tried_once(void **state)
{
	struct rig *g = *state;

	g->refuse_with = "no";
	repo_commit_text(g->repo, "npu.yml", "one");
	rig_open_registry(g);
	rig_until(g, is_refused);
	rig_until(g, is_fetched_again);
	assert_int_equal(g->n_tried, 1);
	assert_true(is_refused(g));
	g->refuse_with = NULL;
	registry_fetch(g->registry); /* a round that runs with the settings at its start */
	registry_retry(g->registry);
	assert_false(is_refused(g));
	rig_until(g, is_tried_twice);
	rig_until(g, is_kept);
	assert_null(registry_status(g->registry)->refused_why);
}

static void test_force_push_back(void **state)
{
	struct rig *g = *state;

	take_first(g, "one");
	g->refuse_with = "no";
	repo_commit_text(g->repo, "npu.yml", "two");
	registry_fetch(g->registry);
	rig_until(g, is_refused);
	repo_commit_text(g->repo, "npu.yml", "one"); /* the same tree and times: the same commit */
	registry_fetch(g->registry);
	rig_until(g, is_nothing_refused);
	assert_int_equal(g->n_tried, 2);
}

static void test_restart_without_network(void **state)
{
	struct rig *g = *state;

	take_first(g, "one");
	rig_close_registry(g);
	g->url[strlen(g->url) - 1] = 'x';
	rig_open_registry(g);
	assert_string_equal(registry_status(g->registry)->commit, g->tried);
	rig_until(g, has_failed);
	assert_string_equal(registry_status(g->registry)->commit, g->tried);
	assert_true(is_kept(g));
	expect_file(g->tried_folder, "npu.yml", "one");
}

static bool is_tried_again(struct rig *g) { return g->n_tried == 3; }

/* A commit that cannot be saved, as on a full disk, does not become active, because a restart would undo it. It is
 * not refused either, but retried. */
static void test_a_commit_that_cannot_be_saved_is_not_used(void **state)
{
	struct rig *g = *state;
	char *blocked = xasprintf("%s/registry/good.new", g->state_dir), *first;

	take_first(g, "one");
	first = xstrdup(g->tried);
	g->block_with = blocked; /* the place of the new file `good` */
	repo_commit_text(g->repo, "npu.yml", "two");
	registry_fetch(g->registry);
	rig_until(g, has_failed);
	assert_int_equal(g->n_tried, 2);
	assert_string_equal(registry_status(g->registry)->commit, first);
	assert_non_null(strstr(registry_status(g->registry)->fetch_error, "good.new"));
	assert_false(is_refused(g));
	g->block_with = NULL;
	registry_fetch(g->registry); /* which removes the folder */
	rig_until(g, is_tried_again);
	rig_until(g, is_in_force);
	assert_string_not_equal(registry_status(g->registry)->commit, first);
	assert_true(is_kept(g));
	free(blocked);
	free(first);
}

static void test_missing_branch(void **state)
{
	struct rig *g = *state;

	rig_open_registry(g);
	rig_until(g, has_failed);
	assert_non_null(strstr(registry_status(g->registry)->fetch_error, "has no branch main"));
	repo_commit_text(g->repo, "npu.yml", "one");
	registry_fetch(g->registry);
	rig_until(g, is_in_force);
	assert_null(registry_status(g->registry)->fetch_error);
}

static void test_another_path_of_the_same_commit(void **state)
{
	struct rig *g = *state;
	char *before;

	take_first(g, "one");
	before = xstrdup(g->tried_folder);
	g->path = "./accelerators.d/";
	rig_configure(g, before);
	rig_until(g, is_tried_twice);
	assert_string_not_equal(g->tried_folder, before);
	expect_file(g->tried_folder, "npu.yml", "one");
	free(before);
}

static void test_damaged_cache_is_rebuilt(void **state)
{
	struct rig *g = *state;
	char *head = xasprintf("%s/registry/repo.git/HEAD", g->state_dir);

	take_first(g, "one");
	assert_int_equal(unlink(head), 0);
	repo_commit_text(g->repo, "npu.yml", "two");
	registry_fetch(g->registry);
	rig_until(g, is_tried_twice);
	rig_until(g, is_kept);
	free(head);
}

static void test_not_used(void **state)
{
	struct rig *g = *state;
	const struct registry_deps deps = {.loop = g->loop, .try_commit = rig_try, .owner = g};
	struct config none = {.state_dir = xstrdup(g->state_dir)}, *c = config_snapshot(&none);

	g->registry = registry_new(&deps);
	registry_configure(g->registry, c);
	config_unref(c);
	registry_fetch(g->registry);
	assert_false(registry_status(g->registry)->is_used);
	rig_close_registry(g);
	assert_int_equal(g->n_tried, 0);
}

/* ---- a server that accepts connections and sends nothing ---- */

static int silent;

static bool is_connected(struct rig *g)
{
	int fd = accept4(silent, NULL, NULL, SOCK_NONBLOCK);

	(void)g;
	if (fd < 0)
		return false;
	/* The socket stays open, so that the peer does not notice anything. */
	return true;
}

static void test_close_cancels_a_fetch_from_a_silent_server(void **state)
{
	struct rig *g = *state;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);

	silent = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(silent, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(silent, 5), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&at, &n), 0);
	snprintf(g->url, sizeof(g->url), "https://127.0.0.1:%d/a/b.git", ntohs(at.sin_port));
	rig_open_registry(g);
	rig_until(g, is_connected);
	rig_close_registry(g); /* ends although no answer ever comes */
	close(silent);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_first_fetch),
	    TEST(test_next_commit),
	    TEST(test_refused_commit_is_not_used),
	    TEST(test_refused_is_tried_once),
	    TEST(test_force_push_back),
	    TEST(test_restart_without_network),
	    TEST(test_a_commit_that_cannot_be_saved_is_not_used),
	    TEST(test_missing_branch),
	    TEST(test_another_path_of_the_same_commit),
	    TEST(test_damaged_cache_is_rebuilt),
	    TEST(test_not_used),
	    TEST(test_close_cancels_a_fetch_from_a_silent_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
