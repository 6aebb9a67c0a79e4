/* Which check runs of a pull request are to be written, and their contents: the desired ones
 * against those on record. Pure: any thread. Private to publish/.
 *
 * L4 always, L3 while a label asks for it: one per current job. A check run that nobody wants any
 * more is closed if it is in progress, and left as it is otherwise. */
#ifndef PUBLISH_CHECK_PLAN_H
#define PUBLISH_CHECK_PLAN_H

#include "model/change_view.h"
#include "store/published.h"
#include "text/check_output.h"

/* The one for merge bots. */
#define CHECK_VERDICT_NAME "outpost"

struct wanted_check {
	char *head_sha, *name, *accelerator;
	char *external_id, *details_url; /* NULL: they stay as they are */
	int64_t job_id;                  /* 0: the verdict's */
	/* The one on record; 0: none. It is written over, except where `is_anew`: GitHub takes no
	 * annotation away, and what was completed does not run again. */
	int64_t check_id;
	bool is_anew;
	struct check_output output;
	uint8_t digest[SHA256_BYTES];
};
struct check_plan {
	struct wanted_check
	    *list; /* only those to be written, the ones that fail first, the verdict last */
	size_t n;
};

/* v: of the PR, whole or cut behind its red cells. on_record: as store_list_checks() gives it. */
void check_plan_make(const struct change_view *v, const struct list_checks *on_record,
    const struct check_options *o, struct check_plan *ret);
void check_plan_release(struct check_plan *p);

#endif
