#include "webhook/payload.h"

#include "model/plan.h"

enum {
	TEXT_MAX_BYTES = 1024,
	COMMENT_MAX_BYTES = 65536,
	PATH_MAX_BYTES = 64,
	LABELS_MAX = 1000,
	/* GitHub lists at most this many in a push, so a list of this length may have been cut. */
	COMMITS_MAX = 2048,
	FILES_MAX = 200, /* of one commit */
	FILE_MAX_BYTES = 1024,
	TITLE_MAX_BYTES = 200,
	AUTHOR_MAX_BYTES = 100,
};

/* ---- which webhooks are used ---- */

/* False: the event is not used. */
static bool find_event_kind(const char *event, enum event_kind *ret)
{
	static const struct {
		const char *event;
		enum event_kind kind;
	} kinds[] = {
	    {"pull_request", EVENT_PULL_REQUEST},
	    {"push", EVENT_PUSH},
	    {"issue_comment", EVENT_ISSUE_COMMENT},
	    {"check_run", EVENT_CHECK_RUN},
	    {"check_suite", EVENT_CHECK_SUITE},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(event, kinds[i].event)) {
			*ret = kinds[i].kind;
			return true;
		}
	/* The App's repositories changed. Every such event counts. */
	*ret = EVENT_INSTALLATION;
	return str_has_prefix(event, "installation");
}

/* NULL: the webhook is used; else the reason why not. */
static const char *refuse_event(enum event_kind kind, const struct skim *s, const struct config *c)
{
	static const char heads[] = "refs/heads/", unused[] = "the action is not used";
	enum pull_action action = pull_action_parse(s->action);

	if (kind == EVENT_INSTALLATION)
		return NULL;
	if (strcasecmp(s->repository, c->upstream_repository) != 0)
		return "not the upstream repository";
	if (kind == EVENT_PULL_REQUEST) {
		if (action == N_PULL_ACTIONS)
			return unused;
		return action == PULL_BASE_CHANGED && !s->has_base_change ? "edited, but not its base" : NULL;
	}
	if (kind == EVENT_PUSH) {
		if (!str_has_prefix(s->ref, heads))
			return "not a push to a branch";
		if (s->is_deleted)
			return "the branch was deleted";
		bool is_listed = strv_contains((const char *const *)c->upstream_branches, s->ref + strlen(heads));
		return is_listed ? NULL : "the branch is not listed";
	}
	if (!str_eq(s->action, kind == EVENT_ISSUE_COMMENT ? "created" : "rerequested"))
		return unused;
	return kind == EVENT_ISSUE_COMMENT && !s->is_pull_comment ? "a comment on an issue" : NULL;
}

enum webhook_class webhook_classify(
    const char *event, const struct skim *s, const struct config *c, const char **ret_reason)
{
	enum event_kind kind;

	*ret_reason = NULL;
	if (str_eq(event, "ping"))
		return WEBHOOK_PONG;
	*ret_reason = find_event_kind(event, &kind) ? refuse_event(kind, s, c) : "the event is not used";
	return *ret_reason ? WEBHOOK_IGNORED : WEBHOOK_USED;
}

/* "owner/name" of https://HOST/owner/name(.git)(/), not terminated; 0: the URL is another kind. */
static size_t repository_of_url(const char *url, const char **ret)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;

	if (!path)
		return 0;
	*ret = path + 1;
	size_t n = strlen(path + 1);
	while (n && path[n] == '/')
		n--;
	if (n > 4 && strncmp(path + 1 + n - 4, ".git", 4) == 0)
		n -= 4;
	return n;
}

bool webhook_is_registry_push(const char *event, const struct skim *s, const struct config *c)
{
	static const char heads[] = "refs/heads/";
	const char *repository;

	if (!c->accelerators_git_url || !str_eq(event, "push") || s->is_deleted)
		return false;
	size_t n = repository_of_url(c->accelerators_git_url, &repository);
	return n && strlen(s->repository) == n && strncasecmp(s->repository, repository, n) == 0 &&
	       str_has_prefix(s->ref, heads) && str_eq(s->ref + strlen(heads), c->accelerators_git_branch);
}

/* ---- bodies ---- */

/* Every path that is read below, sorted. A body has some hundred fields more, so only these become a tree. A path stands for all that is
 * below it. */
static const char *const USED[] = {"action", "after", "before", "changes.base", "check_run.app.id",
    "check_run.external_id", "check_run.head_sha", "check_run.name", "check_suite.app.id", "check_suite.head_sha",
    "comment.author_association", "comment.body", "comment.created_at", "comment.id", "comment.user.login",
    "comment.user.type", "commits", "deleted", "forced", "head_commit.author", "head_commit.message", "issue.number",
    "issue.pull_request", "issue.user.login", "label.name", "pull_request.author_association", "pull_request.base.ref",
    "pull_request.base.sha", "pull_request.draft", "pull_request.head.sha", "pull_request.labels",
    "pull_request.number", "pull_request.state", "pull_request.title", "pull_request.updated_at",
    "pull_request.user.login", "ref", "repository.full_name", "repository.pushed_at", "sender.login"};

/* The part of USED that begins with a path ("pull_request." or ""): the list is sorted. */
struct used_part {
	const char *const *at;
	size_t n, path_bytes;
};

static struct used_part used_below(const char *path)
{
	struct used_part u = {.at = USED, .path_bytes = strlen(path)};
	const char *const *end = USED + ARRAY_LEN(USED);

	while (u.at < end && strncmp(*u.at, path, u.path_bytes) != 0)
		u.at++;
	while (u.at + u.n < end && strncmp(u.at[u.n], path, u.path_bytes) == 0)
		u.n++;
	return u;
}

/* Whether this member is used: 0: it is not; 1: members of it are; 2: all. */
static int use_of_member(const struct used_part *u, const char *key, size_t n)
{
	for (size_t i = 0; n && i < u->n; i++) {
		const char *name = u->at[i] + u->path_bytes;

		if (*name == *key && strncmp(name, key, n) == 0 && (name[n] == '.' || name[n] == '\0'))
			return name[n] == '.' ? 1 : 2;
	}
	return 0;
}

static int load_value(struct json_slice value, json_t **ret, struct error *e)
{
	json_error_t why;

	if (value.n >= 2 && *value.p == '"' && !memchr(value.p, '\\', value.n))
		*ret = json_stringn(value.p + 1, value.n - 2); /* most, and the general way costs ten times as much */
	else
		*ret = json_loadb(value.p, value.n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
	return *ret ? 0 : error_set(e, ERR_INVALID, "%s", why.text);
}

/* Checks the value at `above`, and makes a tree of its members that are used. Calls itself once for each step of the longest
 * path. *action: the value of the top level's member of this name. */
static int load_used(struct json_scan *s, const char *above, json_t **ret, struct json_slice *action, struct error *e)
{
	const struct used_part used = used_below(above);
	struct json_slice key, value;
	int rc = 0;

	if (s->p == s->end || *s->p != '{')
		return json_scan_value(s, &value) ? load_value(value, ret, e) : 0;
	*ret = json_object();
	for (bool is_first = true; !rc && json_scan_member(s, is_first, &key); is_first = false) {
		json_t *name = NULL, *v = NULL;
		const char *text = key.p + 1;
		size_t n = key.n - 2;

		if (memchr(text, '\\', n)) {
			rc = load_value(key, &name, e);
			if (rc)
				break;
			text = json_string_value(name);
			n = json_string_length(name);
		}
		int use = use_of_member(&used, text, n);
		if (use && json_object_getn(*ret, text, n)) {
			rc = error_set(e, ERR_INVALID, "duplicate object key near '%.*s'", (int)n, text);
		} else if (use == 1) {
			char path[PATH_MAX_BYTES];

			snprintf(path, sizeof(path), "%s%.*s.", above, (int)n, text);
			rc = load_used(s, path, &v, action, e);
		} else if (json_scan_value(s, &value) && use == 2) {
			rc = load_value(value, &v, e);
			if (!*above && n == 6 && memcmp(text, "action", n) == 0)
				*action = value;
		}
		if (v)
			json_object_setn_new(*ret, text, n, v);
		json_decref(name);
		if (s->why)
			break;
	}
	return rc;
}

/* Reads fields by their path. `why` keeps the first mistake. Every read returns a value, so one check at the end is
 * enough. */
struct reader {
	const json_t *root;
	struct error why;
};

/* path: "pull_request.head.sha". NULL: a step is missing. A JSON null is returned as a value. */
static const json_t *find_value(const struct reader *r, const char *path)
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

static bool is_absent(const json_t *v) { return !v || json_is_null(v); }

static void complain_about_field(struct reader *r, const char *path, const json_t *v, const char *expected)
{
	if (is_absent(v))
		error_set(&r->why, ERR_INVALID, "%s is missing", path);
	else
		error_set(&r->why, ERR_INVALID, "%s is not %s", path, expected);
}

static char *cut_copy(const char *text, size_t n, size_t max_bytes)
{
	return xstrndup(text, utf8_cut(text, n, max_bytes));
}

static char *read_payload_text(struct reader *r, const char *path, size_t max_bytes)
{
	const json_t *v = find_value(r, path);

	if (!json_is_string(v)) {
		complain_about_field(r, path, v, "text");
		return xstrdup("");
	}
	return cut_copy(json_string_value(v), json_string_length(v), max_bytes);
}

/* Absent or null is "". */
static char *read_optional_text(struct reader *r, const char *path, size_t max_bytes)
{
	return is_absent(find_value(r, path)) ? xstrdup("") : read_payload_text(r, path, max_bytes);
}

static char *read_sha(struct reader *r, const char *path)
{
	char *sha = read_payload_text(r, path, TEXT_MAX_BYTES);

	if (!is_sha1(sha))
		complain_about_field(r, path, find_value(r, path), "a commit's SHA");
	return sha;
}

/* The login of a user; "" for a user that no longer exists (null). */
static char *read_login(struct reader *r, const char *user_path)
{
	char path[PATH_MAX_BYTES];

	if (is_absent(find_value(r, user_path)))
		return xstrdup("");
	snprintf(path, sizeof path, "%s.login", user_path);
	return read_payload_text(r, path, TEXT_MAX_BYTES);
}

static int64_t read_positive(struct reader *r, const char *path)
{
	const json_t *v = find_value(r, path);

	if (!json_is_integer(v) || json_integer_value(v) <= 0) {
		complain_about_field(r, path, v, "a positive integer");
		return 0;
	}
	return json_integer_value(v);
}

/* Absent or null is false, because older servers do not send every field. */
static bool read_flag(struct reader *r, const char *path)
{
	const json_t *v = find_value(r, path);

	if (!is_absent(v) && !json_is_boolean(v))
		complain_about_field(r, path, v, "true or false");
	return json_is_true(v);
}

static int64_t read_time(struct reader *r, const char *path)
{
	const json_t *v = find_value(r, path);
	int64_t ms = 0;
	int err = json_is_string(v) ? rfc3339_parse(json_string_value(v), &ms) : ERR_INVALID;

	if (err)
		complain_about_field(r, path, v, "a time");
	return ms;
}

static void read_pull_request(struct reader *r, struct event *ret)
{
	struct pull_info *pull = &ret->pull;
	const char *before;
	char **labels;

	ret->pull_action = pull_action_parse(ret->action);
	if (ret->pull_action == N_PULL_ACTIONS)
		error_set(&r->why, ERR_INVALID, "action is not one that is used");
	if (ret->pull_action == PULL_BASE_CHANGED && !json_is_object(find_value(r, "changes.base")))
		complain_about_field(r, "changes.base", find_value(r, "changes.base"), "an object");
	pull->number = read_positive(r, "pull_request.number");
	pull->head_sha = read_sha(r, "pull_request.head.sha");
	pull->base_sha = read_sha(r, "pull_request.base.sha");
	pull->base_ref = read_payload_text(r, "pull_request.base.ref", TEXT_MAX_BYTES);
	pull->title = read_payload_text(r, "pull_request.title", TEXT_MAX_BYTES);
	pull->author = read_login(r, "pull_request.user");
	pull->author_association = read_payload_text(r, "pull_request.author_association", TEXT_MAX_BYTES);
	const char *path = "pull_request.labels";
	const json_t *list = find_value(r, path);
	size_t n = json_array_size(list);
	if (!json_is_array(list) || n > LABELS_MAX) {
		complain_about_field(r, path, list, "a list of labels");
		n = 0;
	}
	labels = xcalloc(n + 1, sizeof *labels);
	for (size_t i = 0; i < n; i++) {
		const char *name = json_get_str(json_array_get(list, i), "name");

		if (!name)
			error_set(&r->why, ERR_INVALID, "%s[%zu].name is not text", path, i);
		labels[i] = name ? cut_copy(name, strlen(name), TEXT_MAX_BYTES) : xstrdup("");
	}
	pull->labels = labels;
	pull->is_draft = read_flag(r, "pull_request.draft");
	char *state = read_payload_text(r, "pull_request.state", TEXT_MAX_BYTES);
	pull->is_open = str_eq(state, "open");
	free(state);
	pull->updated_ms = read_time(r, "pull_request.updated_at");
	before = json_string_value(find_value(r, "before"));
	if (ret->pull_action == PULL_SYNCHRONIZE && before && is_sha1(before))
		ret->before = xstrdup(before);
	/* The event for a deleted label does not contain its name. */
	if (ret->pull_action == PULL_LABELED)
		ret->label = read_payload_text(r, "label.name", TEXT_MAX_BYTES);
	else if (ret->pull_action == PULL_UNLABELED)
		ret->label = read_optional_text(r, "label.name", TEXT_MAX_BYTES);
}

/* The files of GitHub's three lists of a pushed commit. NULL: all three are absent. */
static char **read_pushed_files(const json_t *commit)
{
	static const char *const LISTS[] = {"added", "removed", "modified"};
	char **files = NULL;
	size_t n = 0;

	for (size_t k = 0; k < ARRAY_LEN(LISTS); k++) {
		const json_t *list = json_object_get(commit, LISTS[k]);

		if (!json_is_array(list))
			continue;
		if (!files)
			files = xcalloc(FILES_MAX + 2, sizeof(*files));
		for (size_t i = 0; i < json_array_size(list) && n <= FILES_MAX; i++) {
			const char *path = json_string_value(json_array_get(list, i));

			if (n == FILES_MAX)
				path = FILES_INCOMPLETE;
			if (path)
				files[n++] = cut_copy(path, strlen(path), FILE_MAX_BYTES);
		}
	}
	return files;
}

/* Reads all commits. If the list has a mistake, it reads none of them and accepts the push. */
static void read_commits(const struct reader *r, struct event *ret)
{
	const json_t *list = find_value(r, "commits");
	size_t n = json_array_size(list); /* 0: also if it is not an array */
	const char *last = json_get_str(json_array_get(list, n - 1), "id");

	if (n == 0 || n >= COMMITS_MAX || !last || !str_eq(last, ret->after))
		return;
	ret->commits = xcalloc(n, sizeof(*ret->commits));
	for (; ret->n_commits < n; ret->n_commits++) {
		struct push_commit *to = &ret->commits[ret->n_commits];
		const json_t *v = json_array_get(list, ret->n_commits);
		const json_t *by = json_object_get(v, "author");
		const char *sha = json_get_str(v, "id"), *message = json_get_str(v, "message");
		const char *author = json_get_str(by, "username"), *at = json_get_str(v, "timestamp");

		if (!sha || !is_sha1(sha)) {
			push_commits_free(ret->commits, ret->n_commits);
			ret->commits = NULL;
			ret->n_commits = 0;
			return;
		}
		author = author ? author : json_get_str(by, "name");
		author = author ? author : "";
		message = message ? message : "";
		to->sha = xstrdup(sha);
		to->author = cut_copy(author, strlen(author), AUTHOR_MAX_BYTES);
		to->title = cut_copy(message, strcspn(message, "\r\n"), TITLE_MAX_BYTES);
		if (!at || rfc3339_parse(at, &to->at_ms))
			to->at_ms = 0;
		to->files = read_pushed_files(v);
	}
}

static void read_push(struct reader *r, struct event *ret)
{
	const json_t *pushed = find_value(r, "repository.pushed_at");

	ret->ref = read_payload_text(r, "ref", TEXT_MAX_BYTES);
	ret->before = read_sha(r, "before");
	ret->after = read_sha(r, "after");
	ret->is_deleted = read_flag(r, "deleted");
	ret->is_forced = json_is_true(find_value(r, "forced"));
	read_commits(r, ret);
	/* A push has seconds here, unlike all other events. The time only orders recorded states. */
	if (json_is_integer(pushed) && json_integer_value(pushed) > 0 && json_integer_value(pushed) < INT64_MAX / 1000)
		ret->pushed_ms = json_integer_value(pushed) * 1000;
	if (!json_is_object(find_value(r, "head_commit")))
		return;
	char *message = read_optional_text(r, "head_commit.message", TEXT_MAX_BYTES);
	ret->head_message = xstrndup(message, strcspn(message, "\r\n"));
	free(message);
	ret->head_author = read_optional_text(r, "head_commit.author.username", TEXT_MAX_BYTES);
	if (ret->head_author[0] == '\0') {
		free(ret->head_author);
		ret->head_author = read_optional_text(r, "head_commit.author.name", TEXT_MAX_BYTES);
	}
}

static void read_check(struct reader *r, struct event *ret)
{
	const bool is_run = ret->kind == EVENT_CHECK_RUN;

	if (json_is_object(find_value(r, is_run ? "check_run.app" : "check_suite.app")))
		ret->check_app_id = read_positive(r, is_run ? "check_run.app.id" : "check_suite.app.id");
	ret->check_head_sha = read_sha(r, is_run ? "check_run.head_sha" : "check_suite.head_sha");
	if (!is_run)
		return;
	ret->check_name = read_payload_text(r, "check_run.name", TEXT_MAX_BYTES);
	ret->check_external_id = read_optional_text(r, "check_run.external_id", TEXT_MAX_BYTES);
}

int event_parse(const char *event_name, const char *body, size_t n, struct event *ret, struct error *e)
{
	struct reader r = {0};
	json_t *root = NULL;
	struct json_slice action = {NULL, 0};
	struct json_scan s;

	*ret = (struct event){0};
	if (!find_event_kind(event_name, &ret->kind))
		return error_set(e, ERR_INVALID, "the event \"%s\" is not used", event_name);
	int err = json_scan_begin(&s, body, n, e);
	if (!err)
		err = load_used(&s, "", &root, &action, e);
	if (!err)
		err = json_scan_end(&s, e);
	if (err) {
		json_decref(root);
		return err;
	}
	r.root = root;
	if (action.p) {
		ret->action_at = (size_t)(action.p - body);
		ret->action_bytes = action.n;
	}
	ret->sender = read_login(&r, "sender");
	ret->action = ret->kind == EVENT_PUSH ? xstrdup("") : read_payload_text(&r, "action", TEXT_MAX_BYTES);
	ret->repository = ret->kind == EVENT_INSTALLATION
			      ? xstrdup("")
			      : read_payload_text(&r, "repository.full_name", TEXT_MAX_BYTES);
	if (ret->kind != EVENT_INSTALLATION && !is_repository_name(ret->repository))
		complain_about_field(&r, "repository.full_name", find_value(&r, "repository.full_name"), "owner/name");
	if (ret->kind == EVENT_PULL_REQUEST) {
		read_pull_request(&r, ret);
	} else if (ret->kind == EVENT_PUSH) {
		read_push(&r, ret);
	} else if (ret->kind == EVENT_ISSUE_COMMENT) {
		ret->pull.number = read_positive(&r, "issue.number");
		ret->is_pull_comment = json_is_object(find_value(&r, "issue.pull_request"));
		ret->pull_author = read_login(&r, "issue.user");
		ret->comment_id = read_positive(&r, "comment.id");
		ret->comment_body = read_optional_text(&r, "comment.body", COMMENT_MAX_BYTES);
		ret->comment_author = read_login(&r, "comment.user");
		ret->comment_author_type = read_optional_text(&r, "comment.user.type", TEXT_MAX_BYTES);
		ret->comment_association = read_payload_text(&r, "comment.author_association", TEXT_MAX_BYTES);
		ret->comment_created_ms = read_time(&r, "comment.created_at");
	} else if (ret->kind == EVENT_CHECK_RUN || ret->kind == EVENT_CHECK_SUITE) {
		read_check(&r, ret);
	}
	json_decref(root);
	if (r.why.code)
		error_set(e, r.why.code, "%s", r.why.text);
	return r.why.code;
}
