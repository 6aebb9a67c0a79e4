#include "dispatch/dispatch_internal.h"

static const char NO_COMMIT[] = "0000000000000000000000000000000000000000";

static json_t *repository_object(const char *full_name)
{
	const char *slash = strchr(full_name, '/');
	char *owner = xstrndup(full_name, slash ? (size_t)(slash - full_name) : 0);
	json_t *o = json_pack("{s:s, s:s, s:{s:s}}", "full_name", full_name, "name", slash ? slash + 1 : full_name,
	    "owner", "login", owner);

	free(owner);
	return o;
}

char *synthetic_pull(const char *action, const json_t *pull, const char *repository, const char *before)
{
	json_t *known = json_at(pull, "base", "repo", NULL);
	const char *head = json_get_str(json_object_get(pull, "head"), "sha");
	json_t *whole = json_copy((json_t *)pull);

	/* Add the fields that a list may omit. An author without an association counts as untrusted. */
	if (!json_is_boolean(json_object_get(whole, "draft")))
		json_object_set_new(whole, "draft", json_false());
	if (!json_is_array(json_object_get(whole, "labels")))
		json_object_set_new(whole, "labels", json_array());
	if (!json_get_str(whole, "author_association"))
		json_set_str(whole, "author_association", "NONE");
	json_t *body = json_pack("{s:s, s:I, s:o}", "action", action, "number",
	    (json_int_t)json_get_int(pull, "number", 0), "pull_request", whole);
	if (before && head) {
		json_set_str(body, "before", before);
		json_set_str(body, "after", head);
	}
	if (json_get_str(known, "full_name"))
		json_object_set(body, "repository", known);
	else
		json_object_set_new(body, "repository", repository_object(repository));
	if (json_is_object(json_object_get(pull, "user")))
		json_object_set(body, "sender", json_object_get(pull, "user"));
	char *text = json_text(body);
	json_decref(body);
	return text;
}

/* answer: a commit as the API has it. */
static json_t *pushed_commit(const json_t *answer, const char *sha)
{
	const json_t *commit = json_object_get(answer, "commit");
	const char *message = json_get_str(commit, "message");

	return json_pack("{s:s, s:s, s:s?, s:{s:s?, s:s?}}", "id", sha, "message", message ? message : "", "timestamp",
	    json_get_str(json_at(commit, "committer", NULL), "date"), "author", "name",
	    json_get_str(json_at(commit, "author", NULL), "name"), "username",
	    json_get_str(json_object_get(answer, "author"), "login"));
}

char *synthetic_push(const struct missed_push *m)
{
	char *ref = xasprintf("refs/heads/%s", m->name), *text;
	json_t *commits = json_array(), *commit, *body;
	size_t i;

	json_array_foreach(m->between, i, commit)
	{
		const char *sha = json_get_str(commit, "sha");

		json_array_append_new(commits, pushed_commit(commit, sha ? sha : ""));
	}
	body = json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:o}", "ref", ref, "before",
	    m->before ? m->before : NO_COMMIT, "after", m->after, "created", false, "deleted", false, "forced",
	    m->is_forced, "commits", commits, "head_commit",
	    pushed_commit(json_object_get(m->branch, "commit"), m->after), "repository",
	    repository_object(m->repository));
	text = json_text(body);
	json_decref(body);
	free(ref);
	return text;
}

char *synthetic_nightly(const char *repository, const char *branch, const char *head_sha)
{
	char *ref = xasprintf("refs/heads/%s", branch), *text;
	json_t *body = json_pack("{s:o, s:s, s:s, s:s}", "repository", repository_object(repository), "ref", ref,
	    "after", head_sha, "head_sha", head_sha);

	text = json_text(body);
	json_decref(body);
	free(ref);
	return text;
}
