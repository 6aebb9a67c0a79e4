#include "webhook/classify.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "webhook/payload.h"

/* NULL: used; else why not. */
typedef const char *refuse_fn(const struct skim *s, const struct config *c);

static const char *refuse_pull(const struct skim *s, const struct config *c)
{
	enum pull_action action = pull_action_parse(s->action);

	(void)c;
	if (action == N_PULL_ACTIONS)
		return "the action is not used";
	if (action == PULL_BASE_CHANGED && !s->has_base_change)
		return "edited, but not its base";
	return NULL;
}

static const char *refuse_push(const struct skim *s, const struct config *c)
{
	static const char heads[] = "refs/heads/";

	if (!str_has_prefix(s->ref, heads))
		return "not a push to a branch";
	if (s->is_deleted)
		return "the branch was deleted";
	if (!strv_contains((const char *const *)c->upstream_branches, s->ref + strlen(heads)))
		return "the branch is not listed";
	return NULL;
}

static const char *refuse_comment(const struct skim *s, const struct config *c)
{
	(void)c;
	if (!str_eq(s->action, "created"))
		return "the action is not used";
	return s->is_pull_comment ? NULL : "a comment on an issue";
}

static const char *refuse_check(const struct skim *s, const struct config *c)
{
	(void)c;
	return str_eq(s->action, "rerequested") ? NULL : "the action is not used";
}

static const struct {
	const char *event;
	refuse_fn *refuse;
} rules[] = {
    {"pull_request", refuse_pull},
    {"push", refuse_push},
    {"issue_comment", refuse_comment},
    {"check_run", refuse_check},
    {"check_suite", refuse_check},
};

enum webhook_class webhook_classify(
    const char *event, const struct skim *s, const struct config *c, const char **ret_reason)
{
	*ret_reason = NULL;
	if (str_eq(event, "ping"))
		return WEBHOOK_PONG;
	/* Which repositories the App reaches changed: it does not matter which. */
	if (str_has_prefix(event, "installation"))
		return WEBHOOK_USED;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (!str_eq(event, rules[i].event))
			continue;
		if (strcasecmp(s->repository, c->upstream_repository) != 0)
			*ret_reason = "not the upstream repository";
		else
			*ret_reason = rules[i].refuse(s, c);
		return *ret_reason ? WEBHOOK_IGNORED : WEBHOOK_USED;
	}
	*ret_reason = "the event is not used";
	return WEBHOOK_IGNORED;
}

/* "owner/name" of https://HOST/owner/name(.git)(/), not terminated; 0: the URL is another kind. */
static size_t repository_of_url(const char *url, const char **ret)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
	size_t n;

	if (!path)
		return 0;
	*ret = path + 1;
	n = strlen(path + 1);
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
	size_t n;

	if (!c->accelerators_git_url || !str_eq(event, "push") || s->is_deleted)
		return false;
	n = repository_of_url(c->accelerators_git_url, &repository);
	return n && strlen(s->repository) == n && strncasecmp(s->repository, repository, n) == 0 &&
	       str_has_prefix(s->ref, heads) &&
	       str_eq(s->ref + strlen(heads), c->accelerators_git_branch);
}
