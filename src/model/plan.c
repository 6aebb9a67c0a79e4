#include "model/plan.h"

const char LABEL_PREFIX[] = "ciflow/crcr/";
const char FILES_INCOMPLETE[] = "/";

bool pull_has_label(const struct pull_info *pull, const char *accelerator)
{
	for (char **label = pull->labels; label && *label; label++)
		if (str_has_prefix(*label, LABEL_PREFIX) &&
		    strcasecmp(*label + sizeof(LABEL_PREFIX) - 1, accelerator) == 0)
			return true;
	return false;
}

static bool any_path_matches(char *const *patterns, const char *const *files)
{
	for (; *files; files++)
		for (char *const *p = patterns; *p; p++)
			if (glob_matches(*p, *files))
				return true;
	return false;
}

enum trigger_result trigger_pull(const struct accelerator *a, const struct pull_info *pull, const char *const *files)
{
	const struct triggers *t = &a->triggers;

	if (!t->has_pull_request || (pull->is_draft && !t->drafts))
		return TRIGGER_NO;
	if (t->label == LABEL_REQUIRED && !pull_has_label(pull, a->name))
		return TRIGGER_NO;
	if (!t->paths)
		return TRIGGER_YES;
	if (!files)
		return TRIGGER_NEEDS_FILES;
	return any_path_matches(t->paths, files) ? TRIGGER_YES : TRIGGER_NO;
}

bool trigger_push(const struct accelerator *a, const char *branch)
{
	if (!a->triggers.has_push)
		return false;
	return !a->triggers.branches || strv_contains((const char *const *)a->triggers.branches, branch);
}

bool association_is_member(const char *association)
{
	return str_eq(association, "OWNER") || str_eq(association, "MEMBER") || str_eq(association, "COLLABORATOR");
}

enum author_rank author_rank_of(const char *association)
{
	if (association_is_member(association))
		return RANK_MEMBER;
	return str_eq(association, "CONTRIBUTOR") ? RANK_CONTRIBUTOR : RANK_NONE;
}

static const struct {
	enum author_rank needs;
	const char *held_reason;
} TRUSTS[] = {[TRUST_ANYONE] = {RANK_NONE, NULL},
    [TRUST_CONTRIBUTORS] = {RANK_CONTRIBUTOR, "the author has not contributed before"},
    [TRUST_MEMBERS] = {RANK_MEMBER, "the author is not a member"},
    [TRUST_APPROVED] = {RANK_UNREACHED, "every change waits for a member here"},
    [TRUST_MERGED] = {RANK_UNREACHED, "only merged changes run here"}};

enum author_rank trust_needs(enum trust trust) { return TRUSTS[trust].needs; }

const char *trust_holds_pull(enum trust trust, const char *association)
{
	return author_rank_of(association) >= TRUSTS[trust].needs ? NULL : TRUSTS[trust].held_reason;
}

/* The ']' that ends a [set]; NULL: none does. */
static const char *set_end(const char *p)
{
	const char *q = p + 1;

	if (*q == '!' || *q == '^')
		q++;
	if (*q == ']')
		q++;
	while (*q && *q != ']')
		q++;
	return *q ? q : NULL;
}

static bool set_has(const char *p, const char *end, char c)
{
	const char *q = p + 1;
	bool is_negated = *q == '!' || *q == '^', found = false;

	if (is_negated)
		q++;
	for (; q < end; q++) {
		if (q[1] == '-' && q + 2 < end) {
			found |= c >= q[0] && c <= q[2];
			q += 2;
		} else {
			found |= c == *q;
		}
	}
	return found != is_negated && c != '/';
}

/* The length of one element of a pattern, not a star, if it matches the character; else 0. */
static size_t match_one(const char *p, char c)
{
	const char *end = *p == '[' ? set_end(p) : NULL;

	if (end)
		return set_has(p, end, c) ? (size_t)(end - p) + 1 : 0;
	return *p == '?' ? c != '/' : *p == c;
}

/* A matcher with two restart points: it retries the last `*` within its folder and the last `**` anywhere, so the time
 * is at most quadratic. */
bool glob_matches(const char *pattern, const char *path)
{
	const char *p = pattern, *s = path;
	const char *star_p = NULL, *star_s = NULL, *deep_p = NULL, *deep_s = NULL;

	while (*s) {
		size_t n;

		if (p[0] == '*' && p[1] == '*') {
			p += 2;
			/* "a" matches double-star-slash-a: the slash belongs to the star. */
			if (*p == '/' && (p - 2 == pattern || p[-3] == '/'))
				p++;
			deep_p = p;
			deep_s = s;
			star_p = NULL;
			continue;
		}
		if (*p == '*') {
			star_p = ++p;
			star_s = s;
			continue;
		}
		n = *p ? match_one(p, *s) : 0;
		if (n) {
			p += n;
			s++;
		} else if (star_p && *star_s != '/') {
			p = star_p;
			s = ++star_s;
		} else if (deep_p) {
			/* a star for whole folders restarts only where a folder begins */
			bool is_folder_star = deep_p[-1] == '/';

			do
				deep_s++;
			while (is_folder_star && *deep_s && deep_s[-1] != '/');
			star_p = NULL;
			p = deep_p;
			s = deep_s;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}

bool glob_is_valid(const char *pattern)
{
	if (*pattern == '\0' || *pattern == '/')
		return false;
	for (const char *p = strchr(pattern, '['); p; p = strchr(p, '[')) {
		p = set_end(p);
		if (!p)
			return false;
	}
	return true;
}

void plan_want_release(struct plan_want *w)
{
	FREE_ALL(w->accelerator, w->runner, w->target, w->held_reason);
	*w = (struct plan_want){0};
}

static char *copy_some(const char *s) { return s && *s ? xstrdup(s) : NULL; }

void plan_add_retest(struct plan *p, const char *accelerator, const char *runner, const char *suite)
{
	*ARRAY_PUSH(p->retests, p->n_retests) =
	    (struct retest){copy_some(accelerator), copy_some(runner), copy_some(suite)};
}

void plan_release(struct plan *p)
{
	for (size_t i = 0; i < p->n_retests; i++)
		FREE_ALL(p->retests[i].accelerator, p->retests[i].runner, p->retests[i].suite);
	for (size_t i = 0; i < p->n_wants; i++)
		plan_want_release(&p->wants[i]);
	pull_info_release(&p->pull);
	push_commits_free(p->commits, p->n_commits);
	strv_free(p->drops);
	FREE_ALL(p->retests, p->wants, p->reason, p->repository, p->head_sha, p->before, p->ref, p->title, p->author,
	    p->original_action);
	*p = (struct plan){0};
}
