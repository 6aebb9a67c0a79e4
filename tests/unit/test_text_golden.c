/* docs/comments/NAME.md are the comments of typical changes. With OUTPOST_WRITE_COMMENTS in the environment the test
 * rewrites them (make comments), otherwise it compares them. Runs in the root of the repository. */
#include <setjmp.h>

#include <cmocka.h>

#include "golden_views.h"
#include "markdown_oracle.h"
#include "rendering.h"

enum { PICTURE_MAX_BYTES = 150 * 1024 };

static const struct golden {
	const char *name;
	struct change_view *(*make)(void);
	size_t n_tables, n_folds;
} golden[] = {
    {"all-green", golden_all_green, 1, 0},
    {"new-failure", golden_new_failure, 1, 0},
    {"base-broken", golden_base_broken, 1, 1},
    {"flaky", golden_flaky, 1, 1},
    {"known-issue", golden_known_issue, 1, 1},
    {"mixed", golden_mixed, 1, 2},
    {"not-classified", golden_not_classified, 1, 0},
    {"being-looked-at", golden_being_looked_at, 1, 0},
    {"re-running", golden_rerunning, 1, 0},
    {"waits-for-a-good-machine", golden_waits_for_good_machine, 1, 0},
    {"reruns-without-result", golden_reruns_without_result, 1, 0},
    {"settled-by-a-rerun", golden_settled_by_rerun, 1, 1},
    {"confirmed-on-its-base", golden_confirmed_on_base, 1, 1},
    {"likely-flaky", golden_likely_flaky, 1, 0},
    {"silent-vendor", golden_silent_vendor, 1, 0},
    {"held", golden_held, 0, 0},
    {"first-results", golden_first_results, 1, 0},
    {"unhealthy", golden_unhealthy, 1, 1},
    {"required-missing", golden_required_missing, 1, 0},
    {"disappeared-tests", golden_disappeared, 1, 1},
    {"sixty-accelerators", golden_sixty_accelerators, 1, 1},
    {"twenty-thousand-tests", golden_twenty_thousand_tests, 1, 0},
    {"closed", golden_closed, 1, 0},
    {"superseded", golden_superseded, 0, 0},
};

static void check_text(const char *path, const struct comment *c)
{
	struct buf text = BUF_INIT(COMMENT_MAX_BYTES);
	struct error e = {0};

	if (getenv("OUTPOST_WRITE_COMMENTS")) {
		if (file_write_atomic(path, c->markdown, c->bytes, 0644, &e))
			fail_msg("%s", e.text);
		return;
	}
	if (file_read(path, &text, &e))
		fail_msg("%s", e.text);
	if (!str_eq(buf_str(&text), c->markdown))
		fail_msg("%s differs from the comment (make comments rewrites it):\n%s", path, c->markdown);
	buf_release(&text);
}

static void check_one(const struct golden *g)
{
	static const struct comment_options options = {
	    .public_url = "https://outpost.example.org",
	    .github_url = "https://github.com",
	    .bot = "outpost-ci",
	    .now_wall_ms = VIEW_NOW_MS,
	};
	static const char *const allowed[] = {
	    "https://outpost.example.org/", "https://github.com/pytorch/pytorch/", NULL};
	struct change_view *v = g->make();
	char *path = xasprintf("docs/comments/%s.md", g->name);
	struct comment c;
	struct oracle o;

	view_comment(v, &options, &c);
	check_text(path, &c);
	oracle_read(c.markdown, allowed, &o);
	assert_int_equal(o.n_tables, g->n_tables);
	assert_int_equal(o.n_folds, g->n_folds);
	assert_int_equal(o.n_html + o.n_images + o.n_headings + o.n_fences + o.n_references, 0);
	assert_true(c.bytes < COMMENT_MAX_BYTES);
	comment_release(&c);
	change_view_free(v);
	free(path);
}

static void test_comments_match_the_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(golden); i++)
		check_one(&golden[i]);
}

static void test_each_comment_has_its_picture_and_place(void **state)
{
	struct buf index = BUF_INIT(COMMENT_MAX_BYTES);
	struct error e = {0};

	(void)state;
	if (file_read("docs/comments/README.md", &index, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < ARRAY_LEN(golden); i++) {
		char *path = xasprintf("docs/comments/%s.png", golden[i].name);
		char *source = xasprintf("](%s.md)", golden[i].name);
		char *picture = xasprintf("](%s.png)", golden[i].name);
		struct stat st;

		if (stat(path, &st) || st.st_size == 0 || st.st_size > PICTURE_MAX_BYTES)
			fail_msg("%s is missing, empty or too large (make comments)", path);
		if (!strstr(buf_str(&index), source) || !strstr(buf_str(&index), picture))
			fail_msg("docs/comments/README.md does not show %s", golden[i].name);
		free(path);
		free(source);
		free(picture);
	}
	buf_release(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_comments_match_the_files),
	    cmocka_unit_test(test_each_comment_has_its_picture_and_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
