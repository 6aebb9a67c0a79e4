#include "model/trigger.h"

#include <strings.h>

#include "base/str.h"
#include "base/strv.h"

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

enum wish trigger_pull(
    const struct accelerator *a, const struct pull_info *pull, const char *const *files)
{
	const struct triggers *t = &a->triggers;

	if (!t->has_pull_request || (pull->is_draft && !t->drafts))
		return WISH_NO;
	if (t->label == LABEL_REQUIRED && !pull_has_label(pull, a->name))
		return WISH_NO;
	if (!t->paths)
		return WISH_YES;
	if (!files)
		return WISH_NEEDS_FILES;
	return any_path_matches(t->paths, files) ? WISH_YES : WISH_NO;
}

bool trigger_push(const struct accelerator *a, const char *branch)
{
	if (!a->triggers.has_push)
		return false;
	return !a->triggers.branches ||
	       strv_contains((const char *const *)a->triggers.branches, branch);
}

bool association_is_member(const char *association)
{
	return str_eq(association, "OWNER") || str_eq(association, "MEMBER") ||
	       str_eq(association, "COLLABORATOR");
}

enum author_rank author_rank_of(const char *association)
{
	if (association_is_member(association))
		return RANK_MEMBER;
	return str_eq(association, "CONTRIBUTOR") ? RANK_CONTRIBUTOR : RANK_NONE;
}

enum author_rank trust_needs(enum trust trust)
{
	switch (trust) {
	case TRUST_ANYONE:
		return RANK_NONE;
	case TRUST_CONTRIBUTORS:
		return RANK_CONTRIBUTOR;
	case TRUST_MEMBERS:
		return RANK_MEMBER;
	case TRUST_APPROVED:
	case TRUST_MERGED:
		break;
	}
	return RANK_UNREACHED;
}

const char *trust_holds_pull(enum trust trust, const char *association)
{
	if (author_rank_of(association) >= trust_needs(trust))
		return NULL;
	switch (trust) {
	case TRUST_ANYONE:
		return NULL;
	case TRUST_CONTRIBUTORS:
		return "the author has not contributed before";
	case TRUST_MEMBERS:
		return "the author is not a member";
	case TRUST_APPROVED:
		return "every change waits for a member here";
	case TRUST_MERGED:
		return "only merged changes run here";
	}
	return "unknown trust policy";
}
