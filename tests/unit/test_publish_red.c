/* The notice of an episode at each hour, and its text: it mentions only the oncalls, and no text of vendors or
 * commits can become Markdown. */
#include <setjmp.h>

#include <cmocka.h>

#include "publish/publish_internal.h"

#define HOUR INT64_C(3600000)
#define T0   INT64_C(1795176000000) /* 2026-11-20T12:00:00Z */
#define BAD  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define GOOD "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void each_hour_has_its_notice(void **state)
{
	static const struct {
		int notified, reminded, overdue, ended, closed; /* hours; 0: not */
		int now;
		bool may_be_open;
		enum red_step step;
		int next; /* hours; 0: none */
	} cases[] = {
	    {.now = 0, .step = RED_OPEN},
	    {.now = 100, .step = RED_OPEN},
	    {.notified = 1, .now = 1, .step = RED_WAIT, .next = 48},
	    {.notified = 1, .now = 47, .step = RED_WAIT, .next = 48},
	    {.notified = 1, .now = 48, .step = RED_REMIND},
	    {.notified = 1, .now = 71, .step = RED_REMIND},
	    {.notified = 1, .now = 72, .step = RED_OVERDUE}, /* a missed notice is not sent later */
	    {.notified = 1, .reminded = 48, .now = 49, .step = RED_WAIT, .next = 72},
	    {.notified = 1, .reminded = 48, .now = 72, .step = RED_OVERDUE},
	    {.notified = 50, .now = 51, .step = RED_WAIT, .next = 72},
	    {.notified = 80, .now = 80, .step = RED_OVERDUE},
	    {.notified = 1, .reminded = 48, .overdue = 72, .now = 500, .step = RED_OVER},
	    {.notified = 1, .ended = 2, .now = 2, .step = RED_CLOSE},
	    {.notified = 1, .ended = 60, .now = 80, .step = RED_CLOSE},
	    {.ended = 2, .now = 3, .step = RED_OVER}, /* no notice was sent */
	    {.now = 1, .may_be_open = true, .step = RED_OPEN},
	    {.ended = 2, .now = 3, .may_be_open = true, .step = RED_FIND},
	    {.notified = 1, .ended = 2, .now = 3, .may_be_open = true, .step = RED_CLOSE},
	    {.notified = 1, .ended = 2, .closed = 3, .now = 4, .may_be_open = true, .step = RED_OVER},
	    {.notified = 1, .ended = 2, .closed = 3, .now = 100, .step = RED_OVER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
#define AT(h) ((h) ? T0 + (h)*HOUR : 0)
		struct red_episode e = {.first_bad_ms = T0,
		    .notified_ms = AT(cases[i].notified),
		    .reminded_ms = AT(cases[i].reminded),
		    .overdue_ms = AT(cases[i].overdue),
		    .ended_ms = AT(cases[i].ended),
		    .closed_ms = AT(cases[i].closed)};
		int64_t next_ms;

		if (red_step_next(&e, cases[i].may_be_open, T0 + cases[i].now * HOUR, &next_ms) != cases[i].step)
			fail_msg("case %zu", i);
		assert_int_equal(next_ms, AT(cases[i].next));
	}
}

/* ---- texts ---- */

static char *oncall[] = {(char *)"alice", (char *)"bob-2", (char *)"no login", (char *)"x](http://evil)", NULL};
static char *tests[] = {(char *)"model/llama3", (char *)"unit/`a` | @everyone <b>", NULL};
static struct listed_commit commits[] = {
    {.sha = (char *)BAD, .author = (char *)"mallory @x", .title = (char *)"Mend `it` (#1) @pytorch/owners <!-- "},
};
static struct list_commits list = {.list = commits, .n = 1, .is_complete = true};
static struct accelerator npu = {.name = (char *)"npu", .title = (char *)"Ascend @NPU |", .oncall = oncall};
static struct red_episode episode = {.id = 12,
    .accelerator = (char *)"npu",
    .repository = (char *)"pytorch/pytorch",
    .ref = (char *)"main",
    .first_bad_sha = (char *)BAD,
    .last_good_sha = (char *)GOOD,
    .first_bad_ms = T0,
    .ended_sha = (char *)GOOD,
    .has_green_again = true,
    .tests = tests,
    .n_tests = 30};

static struct red_facts facts(void)
{
	return (struct red_facts){.episode = &episode,
	    .accelerator = &npu,
	    .commits = &list,
	    .public_url = "https://outpost.example.org",
	    .github_url = "https://github.com"};
}

/* Removes the code spans: nothing in them is markup. Destroys its argument. */
static void drop_code(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		size_t n = strspn(from, "`");

		if (n) {
			const char *end = from + n;

			while (*end && strspn(end, "`") != n)
				end += strspn(end, "`") ? strspn(end, "`") : 1;
			from = *end ? end + n - 1 : end - 1;
			continue;
		}
		*to++ = *from;
	}
	*to = '\0';
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in:\n%s", part, text);
}

static void assert_harmless(char *text, const char *mentions)
{
	size_t n = strlen(mentions);

	drop_code(text);
	if (n)
		assert_int_equal(strncmp(text, mentions, n), 0);
	assert_null(strchr(text + n, '@'));
	assert_null(strstr(text, "(#"));
	assert_null(strstr(text, "<b>"));
	assert_null(strstr(text, "evil"));
	assert_non_null(strstr(text, "<!-- outpost:red:12"));
	assert_ptr_equal(strstr(text, "<!--"), strrchr(text, '<')); /* only Outpost's own */
	free(text);
}

static void the_issue_says_that_no_report_came(void **state)
{
	struct red_episode silent = episode;
	struct red_facts f = facts();
	char *title, *text, *reminder;

	(void)state;
	silent.is_silence = true;
	silent.tests = (char *[]){(char *)"dispatch/ci", NULL};
	silent.n_tests = 1;
	f.episode = &silent;
	title = red_issue_title(&f);
	text = red_issue_text(&f);
	reminder = red_comment_text(&f, RED_REMIND);
	assert_string_equal(title, "Ascend @NPU | sends no report on upstream main since 2026-11-20");
	assert_has(text, " has sent no report on `main` of ");
	assert_has(text, "\n- First without: [`bbbbbbb`]");
	assert_has(text, "\nNo report there: 1 runner\n\n- `dispatch/ci`\n");
	assert_has(reminder, " has sent no report on `main` of ");
	assert_null(strstr(text, "red on"));
	assert_null(strstr(reminder, "red on"));
	free(title);
	free(text);
	free(reminder);
}

static void the_issue_names_the_broken_tests(void **state)
{
	struct red_facts f = facts();
	char *title = red_issue_title(&f), *text = red_issue_text(&f);

	(void)state;
	assert_string_equal(title, "Ascend @NPU | is red on upstream main since 2026-11-20");
	assert_has(text, "@alice @bob-2: ");
	assert_has(text, "since 2026-11-20 12:00 UTC");
	assert_has(text, "First bad: [`bbbbbbb`](https://github.com/pytorch/pytorch/commit/" BAD
			 ") · [results](https://outpost.example.org/commits/" BAD ")");
	assert_has(text, "Last good: [`aaaaaaa`]");
	assert_has(text, "https://github.com/pytorch/pytorch/compare/" GOOD "..." BAD);
	assert_has(text, "Red there: 30 tests");
	assert_has(text, "and 28 more");
	assert_has(text, "by 2026-11-23 12:00 UTC");
	assert_has(text, "<!-- outpost:red:12 -->");
	assert_harmless(text, "@alice @bob-2: ");
	free(title);
}

static void the_issue_says_what_is_unknown(void **state)
{
	struct red_episode e = episode;
	struct red_facts f = facts();
	char *text;

	(void)state;
	e.last_good_sha = NULL;
	e.n_tests = 0;
	e.tests = tests + 2;
	f.episode = &e;
	f.commits = NULL;
	text = red_issue_text(&f);
	assert_has(text, "Last good: none on record");
	assert_null(strstr(text, "compare"));
	assert_null(strstr(text, "Red there"));
	free(text);
	free(red_notice_text(&f, RED_OPEN));
}

static void only_the_reminder_mentions_the_oncalls_again(void **state)
{
	struct red_facts f = facts();
	char *remind = red_comment_text(&f, RED_REMIND);
	char *overdue = red_comment_text(&f, RED_OVERDUE);
	char *green = red_comment_text(&f, RED_CLOSE);

	(void)state;
	assert_has(remind, "<!-- outpost:red:12:reminder -->");
	assert_has(overdue, "<!-- outpost:red:12:overdue -->");
	assert_has(green, "<!-- outpost:red:12:green -->");
	assert_has(green, "again as of [`aaaaaaa`]");
	assert_harmless(remind, "@alice @bob-2: ");
	assert_harmless(overdue, "");
	assert_harmless(green, "");
}

/* A red test may be explained later: then the episode ends, and nothing is green. */
static void an_episode_that_ended_without_a_pass_is_not_called_green(void **state)
{
	struct red_facts f = facts();
	struct red_episode e = *f.episode;
	char *text;

	(void)state;
	e.has_green_again = false;
	e.ended_sha = NULL;
	f.episode = &e;
	text = red_comment_text(&f, RED_CLOSE);
	assert_has(text, " is not red on ");
	assert_has(text, " any more.");
	assert_harmless(text, "");
}

static void a_notice_is_json(void **state)
{
	struct red_facts f = facts();
	char *text = red_notice_text(&f, RED_OVERDUE);
	json_t *v = NULL;

	(void)state;
	assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
	assert_string_equal(json_get_str(v, "event"), "overdue");
	assert_string_equal(json_get_str(v, "accelerator"), "npu");
	assert_string_equal(json_get_str(v, "red_since"), "2026-11-20T12:00:00Z");
	assert_string_equal(json_get_str(v, "due"), "2026-11-23T12:00:00Z");
	assert_string_equal(json_string_value(json_at(v, "first_bad", "sha", NULL)), BAD);
	assert_int_equal(json_get_int(v, "tests_total", 0), 30);
	assert_int_equal(json_array_size(json_object_get(v, "commits")), 1);
	json_decref(v);
	free(text);
}

int main(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(each_hour_has_its_notice),
	    cmocka_unit_test(the_issue_names_the_broken_tests),
	    cmocka_unit_test(the_issue_says_that_no_report_came),
	    cmocka_unit_test(the_issue_says_what_is_unknown),
	    cmocka_unit_test(only_the_reminder_mentions_the_oncalls_again),
	    cmocka_unit_test(an_episode_that_ended_without_a_pass_is_not_called_green),
	    cmocka_unit_test(a_notice_is_json),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
