#include "publish/publish_internal.h"

enum {
	TITLE_MAX_CHARS = 60,
	COMMIT_MAX_CHARS = 100,
	TEST_MAX_CHARS = 120,
	ONCALLS_MAX = 10,
	LOGIN_MAX_BYTES = 39,
	URL_MAX_BYTES = 1024,
	TEXT_BYTES = 60000, /* GitHub takes 65,536 characters; the lists are far shorter */
};

enum red_step red_step_next(const struct red_episode *e, bool may_be_open, int64_t now_ms, int64_t *ret_next_ms)
{
	int64_t remind_ms = e->first_bad_ms + RED_REMIND_MS;
	int64_t overdue_ms = e->first_bad_ms + RED_OVERDUE_MS;

	*ret_next_ms = 0;
	if (e->closed_ms)
		return RED_OVER;
	if (e->ended_ms && !e->notified_ms)
		return may_be_open ? RED_FIND : RED_OVER;
	if (e->ended_ms)
		return RED_CLOSE;
	if (!e->notified_ms)
		return RED_OPEN;
	if (e->overdue_ms)
		return RED_OVER; /* the end of the episode makes the row due again */
	if (now_ms >= overdue_ms)
		return RED_OVERDUE;
	if (!e->reminded_ms && e->notified_ms < remind_ms) {
		if (now_ms >= remind_ms)
			return RED_REMIND;
		*ret_next_ms = remind_ms;
	} else {
		*ret_next_ms = overdue_ms;
	}
	return RED_WAIT;
}

const char *red_step_name(enum red_step step)
{
	switch (step) {
	case RED_OPEN:
	case RED_FIND:
		return "red";
	case RED_REMIND:
		return "reminder";
	case RED_OVERDUE:
		return "overdue";
	case RED_CLOSE:
		return "green";
	case RED_WAIT:
	case RED_OVER:
		break;
	}
	return NULL;
}

char *red_marker(int64_t episode, enum red_step step)
{
	if (step == RED_OPEN)
		return xasprintf("<!-- outpost:red:%lld -->", (long long)episode);
	return xasprintf("<!-- outpost:red:%lld:%s -->", (long long)episode, red_step_name(step));
}

/* "2026-11-20 12:00 UTC" */
static void append_time(struct buf *out, int64_t wall_ms)
{
	char text[RFC3339_BYTES];

	rfc3339_format(wall_ms, text);
	buf_appendf(out, "%.10s %.5s UTC", text, text + 11);
}

static bool is_login(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n && n <= LOGIN_MAX_BYTES && !s[n];
}

/* "@alice @bob: " or nothing. */
static void append_oncalls(struct buf *out, const struct accelerator *a)
{
	int n = 0;

	for (char **login = a->oncall; *login && n < ONCALLS_MAX; login++)
		if (is_login(*login))
			buf_appendf(out, "%s@%s", n++ ? " " : "", *login);
	if (n)
		buf_append_str(out, ": ");
}

static void append_name(struct buf *out, const struct red_facts *f)
{
	escape_markdown_label(out, f->accelerator->title, TITLE_MAX_CHARS, MARKDOWN_TEXT);
}

static void append_branch(struct buf *out, const struct red_facts *f)
{
	escape_markdown_code(out, f->episode->ref, 0, MARKDOWN_TEXT);
	buf_append_str(out, " of ");
	escape_markdown_code(out, f->episode->repository, 0, MARKDOWN_TEXT);
}

/* `abc1234`, linked to where GitHub shows it. */
static void append_commit(struct buf *out, const struct red_facts *f, const char *sha)
{
	buf_appendf(out, "[`%.7s`](%s/%s/commit/%s)", sha, f->github_url, f->episode->repository, sha);
}

/* [words](the page at `path`); only the words if the URL is not valid. */
static void append_own_link(struct buf *out, const struct red_facts *f, const char *words, const char *path)
{
	char *url = xasprintf("%s%s", f->public_url, path);
	struct buf target = BUF_INIT(4 * URL_MAX_BYTES);

	if (escape_url(&target, url, URL_MAX_BYTES, URL_HTTPS_OR_HTTP))
		buf_appendf(out, "[%s](%s)", words, buf_str(&target));
	else
		buf_append_str(out, words);
	buf_release(&target);
	free(url);
}

/* " has been red on `main` of `pytorch/pytorch` since 2026-11-20 12:00 UTC" */
static void append_state(struct buf *out, const struct red_facts *f)
{
	buf_append_str(out, f->episode->is_silence ? " has sent no report on " : " has been red on ");
	append_branch(out, f);
	buf_append_str(out, " since ");
	append_time(out, f->episode->first_bad_ms);
}

static void append_commits(struct buf *out, const struct red_facts *f)
{
	const struct list_commits *l = f->commits;
	const struct red_episode *e = f->episode;

	if (!e->last_good_sha)
		return;
	buf_appendf(out, "- Between them: [compare](%s/%s/compare/%s...%s)", f->github_url, e->repository,
	    e->last_good_sha, e->first_bad_sha);
	if (l && l->n && !l->is_complete)
		buf_appendf(out, ", of which these are known");
	buf_append_str(out, "\n");
	for (size_t i = 0; l && i < l->n; i++) {
		const struct listed_commit *c = &l->list[i];

		buf_append_str(out, "  - ");
		append_commit(out, f, c->sha);
		buf_append_str(out, " ");
		if (c->title)
			escape_markdown_code(out, c->title, COMMIT_MAX_CHARS, MARKDOWN_TEXT);
		if (c->author) {
			buf_append_str(out, " by ");
			escape_markdown_code(out, c->author, LOGIN_MAX_BYTES, MARKDOWN_TEXT);
		}
		buf_append_str(out, "\n");
	}
}

char *red_issue_title(const struct red_facts *f)
{
	struct buf out = BUF_INIT(4096);
	char since[RFC3339_BYTES];

	escape_line(&out, f->accelerator->title, TITLE_MAX_CHARS);
	buf_append_str(&out, f->episode->is_silence ? " sends no report on upstream " : " is red on upstream ");
	escape_line(&out, f->episode->ref, TITLE_MAX_CHARS);
	buf_appendf(&out, " since %.10s", rfc3339_format(f->episode->first_bad_ms, since));
	return buf_detach(&out);
}

char *red_issue_text(const struct red_facts *f)
{
	const struct red_episode *e = f->episode;
	struct buf out = BUF_INIT(TEXT_BYTES);
	char *marker = red_marker(e->id, RED_OPEN), *path;

	append_oncalls(&out, f->accelerator);
	append_name(&out, f);
	append_state(&out, f);
	buf_appendf(&out, ".\n\n- First %s: ", e->is_silence ? "without" : "bad");
	append_commit(&out, f, e->first_bad_sha);
	buf_append_str(&out, " · ");
	path = xasprintf("/commits/%s", e->first_bad_sha);
	append_own_link(&out, f, "results", path);
	buf_append_str(&out, "\n- Last good: ");
	if (e->last_good_sha)
		append_commit(&out, f, e->last_good_sha);
	else
		buf_append_str(&out, "none on record");
	buf_append_str(&out, "\n");
	append_commits(&out, f);
	size_t n_tests = 0;

	if (e->n_tests) {
		buf_appendf(&out, "\n%s there: %zu %s%s\n\n", e->is_silence ? "No report" : "Red", e->n_tests,
		    e->is_silence ? "runner" : "test", e->n_tests == 1 ? "" : "s");
		for (; e->tests[n_tests]; n_tests++) {
			buf_append_str(&out, "- ");
			escape_markdown_code(&out, e->tests[n_tests], TEST_MAX_CHARS, MARKDOWN_TEXT);
			buf_append_str(&out, "\n");
		}
		if (n_tests < e->n_tests)
			buf_appendf(&out, "- and %zu more\n", e->n_tests - n_tests);
	}
	buf_append_str(&out, "\nA break of an upstream branch is to be resolved within 72 hours: by ");
	append_time(&out, e->first_bad_ms + RED_OVERDUE_MS);
	buf_appendf(&out,
	    ". Outpost sends one reminder after 48 hours, and closes this issue when the accelerator is green again."
	    "\n\n%s\n",
	    marker);
	FREE_ALL(path, marker);
	return buf_detach(&out);
}

static void append_still_red(struct buf *out, const struct red_facts *f)
{
	append_name(out, f);
	append_state(out, f);
	buf_appendf(out, ", first %s ", f->episode->is_silence ? "without" : "bad");
	append_commit(out, f, f->episode->first_bad_sha);
}

char *red_comment_text(const struct red_facts *f, enum red_step step)
{
	const struct red_episode *e = f->episode;
	struct buf out = BUF_INIT(TEXT_BYTES);
	char *marker = red_marker(e->id, step);
	char *page = xasprintf("/api/v1/accelerators/%s", e->accelerator);

	if (step == RED_REMIND) {
		append_oncalls(&out, f->accelerator);
		append_still_red(&out, f);
		buf_append_str(&out, ". It is to be resolved by ");
		append_time(&out, e->first_bad_ms + RED_OVERDUE_MS);
		buf_append_str(&out, ".");
	} else if (step == RED_OVERDUE) {
		buf_append_str(&out, "Overdue: ");
		append_still_red(&out, f);
		buf_append_str(&out, ", which is more than 72 hours. It is shown so in ");
		append_own_link(&out, f, "its figures", page);
		buf_append_str(&out, " and in pull requests.");
	} else {
		append_name(&out, f);
		buf_append_str(&out, e->has_green_again ? " is green on " : " is not red on ");
		append_branch(&out, f);
		buf_append_str(&out, e->has_green_again ? " again" : " any more");
		if (e->ended_sha) {
			buf_append_str(&out, " as of ");
			append_commit(&out, f, e->ended_sha);
		}
		buf_append_str(&out, ".");
	}
	buf_appendf(&out, "\n\n%s\n", marker);
	FREE_ALL(page, marker);
	return buf_detach(&out);
}

/* ---- notices ---- */

static json_t *red_commit_json(const struct red_facts *f, const char *sha)
{
	if (!sha)
		return json_null();
	char *url = xasprintf("%s/%s/commit/%s", f->github_url, f->episode->repository, sha);
	json_t *v = json_object();
	json_set_str(v, "sha", sha);
	json_set_str(v, "url", url);
	free(url);
	return v;
}

static json_t *commits_json(const struct red_facts *f)
{
	json_t *list = json_array();

	for (size_t i = 0; f->commits && i < f->commits->n; i++) {
		const struct listed_commit *c = &f->commits->list[i];
		json_t *v = red_commit_json(f, c->sha);

		json_set_str(v, "author", c->author);
		json_set_str(v, "title", c->title);
		json_array_append_new(list, v);
	}
	return list;
}

char *red_notice_text(const struct red_facts *f, enum red_step step)
{
	const struct red_episode *e = f->episode;
	json_t *v = json_object(), *tests = json_array(), *oncall = json_array();
	char *url = xasprintf("%s/api/v1/accelerators/%s", f->public_url, e->accelerator), *text;

	for (char **test = e->tests; *test; test++)
		json_array_append_new(tests, json_string(*test));
	for (char **login = f->accelerator->oncall; *login; login++)
		json_array_append_new(oncall, json_string(*login));
	json_set_int(v, "schema", 1);
	json_set_str(v, "event", red_step_name(step));
	json_set_int(v, "episode", e->id);
	json_set_str(v, "accelerator", e->accelerator);
	json_set_str(v, "repository", e->repository);
	json_set_str(v, "branch", e->ref);
	json_set_time(v, "red_since", e->first_bad_ms);
	json_set_time(v, "due", e->first_bad_ms + RED_OVERDUE_MS);
	json_set_time(v, "green_since", e->ended_ms);
	json_object_set_new(v, "first_bad", red_commit_json(f, e->first_bad_sha));
	json_object_set_new(v, "last_good", red_commit_json(f, e->last_good_sha));
	json_object_set_new(v, "green", red_commit_json(f, e->ended_sha));
	json_object_set_new(v, "commits", commits_json(f));
	json_object_set_new(v, "commits_complete", json_boolean(f->commits && f->commits->is_complete));
	json_object_set_new(v, "tests", tests);
	json_set_int(v, "tests_total", (int64_t)e->n_tests);
	json_object_set_new(v, "oncall", oncall);
	json_set_str(v, "url", url);
	text = json_text(v);
	json_decref(v);
	free(url);
	return text;
}
