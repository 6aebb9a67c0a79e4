#include "webhook/payload.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

enum {
	TEXT_MAX_BYTES = 1024,
	COMMENT_MAX_BYTES = 65536,
	PATH_MAX_BYTES = 64,
	LABELS_MAX = 1000,
	/* GitHub lists no more in a push: a list so long may have been cut. */
	COMMITS_MAX = 2048,
	TITLE_MAX_BYTES = 200,
	AUTHOR_MAX_BYTES = 100,
};

/* Reads fields by their path. The first that is wrong is kept in `why`; what is read after
 * it still gives a value, so one check at the end is enough. */
struct reader {
	const json_t *root;
	struct error why;
};

enum pull_action pull_action_parse(const char *word)
{
	enum pull_action a = 0;

	while (a < N_PULL_ACTIONS && !str_eq(pull_action_name(a), word))
		a++;
	return a;
}

/* "pull_request.head.sha". NULL when a step is missing; a JSON null is returned as such. */
static const json_t *find(const struct reader *r, const char *path)
{
	const json_t *v = r->root;

	while (v && *path) {
		size_t n = strcspn(path, ".");
		char key[PATH_MAX_BYTES];

		snprintf(key, sizeof key, "%.*s", (int)n, path);
		v = json_object_get(v, key);
		path += path[n] ? n + 1 : n;
	}
	return v;
}

static bool is_absent(const json_t *v)
{
	return !v || json_is_null(v);
}

static void complain(struct reader *r, const char *path, const json_t *v, const char *wanted)
{
	if (is_absent(v))
		error_set(&r->why, ERR_INVALID, "%s is missing", path);
	else
		error_set(&r->why, ERR_INVALID, "%s is not %s", path, wanted);
}

static char *cut_copy(const char *text, size_t n, size_t max_bytes)
{
	return xstrndup(text, utf8_cut(text, n, max_bytes));
}

static char *read_text(struct reader *r, const char *path, size_t max_bytes)
{
	const json_t *v = find(r, path);

	if (!json_is_string(v)) {
		complain(r, path, v, "text");
		return xstrdup("");
	}
	return cut_copy(json_string_value(v), json_string_length(v), max_bytes);
}

/* Absent or null is "". */
static char *read_optional_text(struct reader *r, const char *path, size_t max_bytes)
{
	return is_absent(find(r, path)) ? xstrdup("") : read_text(r, path, max_bytes);
}

static char *read_sha(struct reader *r, const char *path)
{
	char *sha = read_text(r, path, TEXT_MAX_BYTES);

	if (!is_sha1(sha))
		complain(r, path, find(r, path), "a commit's SHA");
	return sha;
}

static char *read_repository(struct reader *r)
{
	static const char path[] = "repository.full_name";
	char *name = read_text(r, path, TEXT_MAX_BYTES);

	if (!is_repository_name(name))
		complain(r, path, find(r, path), "owner/name");
	return name;
}

/* The login of a user; "" for one that no longer exists (null). */
static char *read_login(struct reader *r, const char *user_path)
{
	char path[PATH_MAX_BYTES];

	if (is_absent(find(r, user_path)))
		return xstrdup("");
	snprintf(path, sizeof path, "%s.login", user_path);
	return read_text(r, path, TEXT_MAX_BYTES);
}

static int64_t read_positive(struct reader *r, const char *path)
{
	const json_t *v = find(r, path);

	if (!json_is_integer(v) || json_integer_value(v) <= 0) {
		complain(r, path, v, "a positive integer");
		return 0;
	}
	return json_integer_value(v);
}

/* Absent or null is false: servers of older versions do not send each. */
static bool read_flag(struct reader *r, const char *path)
{
	const json_t *v = find(r, path);

	if (!is_absent(v) && !json_is_boolean(v))
		complain(r, path, v, "true or false");
	return json_is_true(v);
}

static int64_t read_time(struct reader *r, const char *path)
{
	const json_t *v = find(r, path);
	int64_t ms = 0;
	int err = json_is_string(v) ? rfc3339_parse(json_string_value(v), &ms) : ERR_INVALID;

	if (err)
		complain(r, path, v, "a time");
	return ms;
}

static char **read_labels(struct reader *r, const char *path)
{
	const json_t *list = find(r, path);
	size_t n = json_array_size(list); /* 0 for what is no array */
	char **labels;

	if (!json_is_array(list) || n > LABELS_MAX) {
		complain(r, path, list, "a list of labels");
		n = 0;
	}
	labels = xcalloc(n + 1, sizeof *labels);
	for (size_t i = 0; i < n; i++) {
		const char *name = json_get_str(json_array_get(list, i), "name");

		if (!name)
			error_set(&r->why, ERR_INVALID, "%s[%zu].name is not text", path, i);
		labels[i] = name ? cut_copy(name, strlen(name), TEXT_MAX_BYTES) : xstrdup("");
	}
	return labels;
}

static void read_pull_request(struct reader *r, struct event *ret)
{
	struct pull_info *pull = &ret->pull;
	const char *before;
	char *state;

	ret->pull_action = pull_action_parse(ret->action);
	if (ret->pull_action == N_PULL_ACTIONS)
		error_set(&r->why, ERR_INVALID, "action is not one that is used");
	if (ret->pull_action == PULL_BASE_CHANGED && !json_is_object(find(r, "changes.base")))
		complain(r, "changes.base", find(r, "changes.base"), "an object");
	pull->number = read_positive(r, "pull_request.number");
	pull->head_sha = read_sha(r, "pull_request.head.sha");
	pull->base_sha = read_sha(r, "pull_request.base.sha");
	pull->base_ref = read_text(r, "pull_request.base.ref", TEXT_MAX_BYTES);
	pull->title = read_text(r, "pull_request.title", TEXT_MAX_BYTES);
	pull->author = read_login(r, "pull_request.user");
	pull->author_association = read_text(r, "pull_request.author_association", TEXT_MAX_BYTES);
	pull->labels = read_labels(r, "pull_request.labels");
	pull->is_draft = read_flag(r, "pull_request.draft");
	state = read_text(r, "pull_request.state", TEXT_MAX_BYTES);
	pull->is_open = str_eq(state, "open");
	free(state);
	pull->updated_ms = read_time(r, "pull_request.updated_at");
	before = json_string_value(find(r, "before"));
	if (ret->pull_action == PULL_SYNCHRONIZE && before && is_sha1(before))
		ret->before = xstrdup(before);
	/* A label that was deleted is taken off without being named. */
	if (ret->pull_action == PULL_LABELED)
		ret->label = read_text(r, "label.name", TEXT_MAX_BYTES);
	else if (ret->pull_action == PULL_UNLABELED)
		ret->label = read_optional_text(r, "label.name", TEXT_MAX_BYTES);
}

static bool read_commit(const json_t *v, struct push_commit *ret)
{
	const json_t *by = json_object_get(v, "author");
	const char *sha = json_get_str(v, "id"), *message = json_get_str(v, "message");
	const char *author = json_get_str(by, "username"), *at = json_get_str(v, "timestamp");

	if (!sha || !is_sha1(sha))
		return false;
	author = author ? author : json_get_str(by, "name");
	author = author ? author : "";
	message = message ? message : "";
	ret->sha = xstrdup(sha);
	ret->author = cut_copy(author, strlen(author), AUTHOR_MAX_BYTES);
	ret->title = cut_copy(message, strcspn(message, "\r\n"), TITLE_MAX_BYTES);
	if (!at || rfc3339_parse(at, &ret->at_ms))
		ret->at_ms = 0;
	return true;
}

/* All of them or none; a list that is wrong is no reason to refuse the push. */
static void read_commits(const struct reader *r, struct event *ret)
{
	const json_t *list = find(r, "commits");
	size_t n = json_array_size(list); /* 0 for what is no array */
	const char *last = json_get_str(json_array_get(list, n - 1), "id");

	if (n == 0 || n >= COMMITS_MAX || !last || !str_eq(last, ret->after))
		return;
	ret->commits = xcalloc(n, sizeof(*ret->commits));
	while (ret->n_commits < n &&
	       read_commit(json_array_get(list, ret->n_commits), &ret->commits[ret->n_commits]))
		ret->n_commits++;
	if (ret->n_commits == n)
		return;
	push_commits_free(ret->commits, ret->n_commits);
	ret->commits = NULL;
	ret->n_commits = 0;
}

static void read_push(struct reader *r, struct event *ret)
{
	const json_t *pushed = find(r, "repository.pushed_at");
	char *message;

	ret->ref = read_text(r, "ref", TEXT_MAX_BYTES);
	ret->before = read_sha(r, "before");
	ret->after = read_sha(r, "after");
	ret->is_deleted = read_flag(r, "deleted");
	ret->is_forced = json_is_true(find(r, "forced"));
	read_commits(r, ret);
	/* Seconds in a push, unlike everywhere else; only used to order what is known. */
	if (json_is_integer(pushed) && json_integer_value(pushed) > 0 &&
	    json_integer_value(pushed) < INT64_MAX / 1000)
		ret->pushed_ms = json_integer_value(pushed) * 1000;
	if (!json_is_object(find(r, "head_commit")))
		return;
	message = read_optional_text(r, "head_commit.message", TEXT_MAX_BYTES);
	ret->head_message = xstrndup(message, strcspn(message, "\r\n"));
	free(message);
	ret->head_author = read_optional_text(r, "head_commit.author.username", TEXT_MAX_BYTES);
	if (ret->head_author[0] == '\0') {
		free(ret->head_author);
		ret->head_author = read_optional_text(r, "head_commit.author.name", TEXT_MAX_BYTES);
	}
}

static void read_issue_comment(struct reader *r, struct event *ret)
{
	ret->pull.number = read_positive(r, "issue.number");
	ret->is_pull_comment = json_is_object(find(r, "issue.pull_request"));
	ret->pull_author = read_login(r, "issue.user");
	ret->comment_id = read_positive(r, "comment.id");
	ret->comment_body = read_optional_text(r, "comment.body", COMMENT_MAX_BYTES);
	ret->comment_author = read_login(r, "comment.user");
	ret->comment_author_type = read_optional_text(r, "comment.user.type", TEXT_MAX_BYTES);
	ret->comment_association = read_text(r, "comment.author_association", TEXT_MAX_BYTES);
	ret->comment_created_ms = read_time(r, "comment.created_at");
}

static void read_check(struct reader *r, struct event *ret)
{
	const bool is_run = ret->kind == EVENT_CHECK_RUN;

	if (json_is_object(find(r, is_run ? "check_run.app" : "check_suite.app")))
		ret->check_app_id =
		    read_positive(r, is_run ? "check_run.app.id" : "check_suite.app.id");
	ret->check_head_sha = read_sha(r, is_run ? "check_run.head_sha" : "check_suite.head_sha");
	if (!is_run)
		return;
	ret->check_name = read_text(r, "check_run.name", TEXT_MAX_BYTES);
	ret->check_external_id = read_optional_text(r, "check_run.external_id", TEXT_MAX_BYTES);
}

static int kind_of(const char *event_name, enum event_kind *ret)
{
	static const struct {
		const char *name;
		enum event_kind kind;
	} kinds[] = {
	    {"pull_request", EVENT_PULL_REQUEST},
	    {"push", EVENT_PUSH},
	    {"issue_comment", EVENT_ISSUE_COMMENT},
	    {"check_run", EVENT_CHECK_RUN},
	    {"check_suite", EVENT_CHECK_SUITE},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(event_name, kinds[i].name)) {
			*ret = kinds[i].kind;
			return 0;
		}
	*ret = EVENT_INSTALLATION;
	return str_has_prefix(event_name, "installation") ? 0 : ERR_INVALID;
}

int event_parse(
    const char *event_name, const char *body, size_t n, struct event *ret, struct error *e)
{
	struct reader r = {0};
	json_t *root = NULL;
	int err;

	*ret = (struct event){0};
	err = kind_of(event_name, &ret->kind);
	if (err)
		return error_set(e, err, "the event \"%s\" is not used", event_name);
	err = json_parse(body, n, &root, e);
	if (err)
		return err;
	r.root = root;
	ret->sender = read_login(&r, "sender");
	ret->action =
	    ret->kind == EVENT_PUSH ? xstrdup("") : read_text(&r, "action", TEXT_MAX_BYTES);
	ret->repository = ret->kind == EVENT_INSTALLATION ? xstrdup("") : read_repository(&r);
	if (ret->kind == EVENT_PULL_REQUEST)
		read_pull_request(&r, ret);
	else if (ret->kind == EVENT_PUSH)
		read_push(&r, ret);
	else if (ret->kind == EVENT_ISSUE_COMMENT)
		read_issue_comment(&r, ret);
	else if (ret->kind == EVENT_CHECK_RUN || ret->kind == EVENT_CHECK_SUITE)
		read_check(&r, ret);
	json_decref(root);
	if (r.why.code)
		error_set(e, r.why.code, "%s", r.why.text);
	return r.why.code;
}
