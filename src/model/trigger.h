/* Who wants an event: triggers, labels, drafts, branches and trust, as pure functions. */
#ifndef MODEL_TRIGGER_H
#define MODEL_TRIGGER_H

#include <stdbool.h>

#include "model/accelerator.h"
#include "model/event.h"

/* "ciflow/crcr/": the label prefix that vendors' users know. */
extern const char LABEL_PREFIX[];
/* The name that stands for "and more, which GitHub did not list" among changed files; no
 * file can be called so. With it in the list every path may be among them. */
extern const char FILES_INCOMPLETE[];

/* `**` crosses folders, `*` and `?` do not, [a-z] works; the whole path must match. */
bool glob_matches(const char *pattern, const char *path);
/* A pattern that could never be meant: empty, leading '/', unbalanced '['. */
bool glob_is_valid(const char *pattern);

enum wish {
	WISH_NO,
	WISH_YES,
	WISH_NEEDS_FILES, /* depends on the changed files, which are not known yet */
};

/* Does this accelerator want this PR as it is now (drafts, label, paths)? files: the
 * changed paths, NULL-terminated, or NULL while unknown. */
enum wish trigger_pull(
    const struct accelerator *a, const struct pull_info *pull, const char *const *files);
/* Does it want a push to `branch` (of upstream's branches)? */
bool trigger_push(const struct accelerator *a, const char *branch);
bool pull_has_label(const struct pull_info *pull, const char *accelerator); /* ciflow/crcr/NAME */

/* How far GitHub vouches for an author, and how far a policy asks it to: it admits who reaches it. */
enum author_rank {
	RANK_NONE,
	RANK_CONTRIBUTOR,
	RANK_MEMBER,
	RANK_UNREACHED, /* by no author: a person has to release it, or it has to be merged */
};
enum author_rank author_rank_of(const char *author_association);
enum author_rank trust_needs(enum trust trust);

/* NULL when the policy admits it, else why it is held (static text). */
const char *trust_holds_pull(enum trust trust, const char *author_association);
/* "OWNER", "MEMBER" or "COLLABORATOR". */
bool association_is_member(const char *association);

#endif
