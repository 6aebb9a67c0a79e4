/* One change: its query, and its JSON, the answer of /api/v1/pulls/{n} and /api/v1/commits/{sha}. */
#pragma once

#include "db/store.h"
#include "model/change_view.h"

/* The first of these that is set names the change: number, head_sha, change_id. Thread: the query runs on a reader;
 * everything else belongs to the caller. */
struct get_change {
	struct store_query q;
	const char *repository;
	int64_t number; /* > 0: the current head of this pull request */
	/* this commit: the newest change of it, with a dispatch if there is one */
	const char *head_sha;
	unsigned kinds; /* with head_sha: bits 1 << CHANGE_…; 0: any */
	int64_t change_id;
	size_t max_verdicts; /* 0: all. Red ones are read first */
	/* With a limit: change_json() gets this choice, and only the cells that it needs are read. NULL: of no effect */
	const struct verdict_choice *choice;
	int64_t now_ms;
	struct change_view *view; /* out; change_view_free(); NULL with ERR_NOT_FOUND */
};
int store_get_change(struct store *s, struct get_change *q) MUST_CHECK;

/* Which cells an answer lists. */
struct verdict_choice {
	size_t limit;          /* 0: all */
	unsigned statuses;     /* bits by enum test_status; 0: all */
	unsigned attributions; /* bits by enum attribution; 0: all, also those without one */
	/* where to go on: the bytes of the cursor, borrowed; 0 bytes: from the beginning */
	const char *after;
	size_t after_bytes;
};

/* As text, which the caller frees: the fields of docs/api.md, each always there (null when its value is not known), and Outpost's
 * own, among them `summary` (text/summary.h, and as `text` the first sentence of the comment, as plain text). A
 * cell's `evidence_url` leads to the issue of a KNOWN failure, else to the page of the job that is the evidence;
 * null: there is no evidence. Accelerators at L1 are left out. Bytes that are not UTF-8 become U+FFFD. public_url: without
 * a trailing slash. choice: which cells are listed; everything else is about the whole change. Thread: any. */
char *change_json(const struct change_view *v, const char *public_url, const struct verdict_choice *choice);

/* ---- the cells of a change: its red tests first, the reruns that would help to decide them, and the difference to the base ---- */

struct cell_sets;
/* They fill in a view that has its accelerators, by name; v owns what they add. cells: the change's. Thread: reader. */
/* At most max cells (0: all), red ones first, so that a cut view has all bad news; a cut view has the counts, too. With a
 * choice that has a limit: the cells that change_json() needs for it. */
void change_cells_read(const struct view *d, struct change_view *v, const struct cell_sets *cells, size_t max,
    const struct verdict_choice *choice);
/* verdicts[].rerun and .rerun_job of cells without a decision; change_cells_read() calls it. */
void change_reruns_read(const struct view *d, struct change_view *v);
/* accelerators[].delta; the jobs and dispatches have been read. */
void change_deltas_read(const struct view *d, struct change_view *v, const struct cell_sets *cells);
/* Appends to the object that is open (base/json_out.h): `verdicts`, `verdicts_total` (how many cells fit the choice, listed or not) and `next` (the cursor of the
 * rest as base64url, or null). The order is suite, test, dtype and accelerator, so that a cursor stays valid while cells
 * come and go. Accelerators at L1 are left out. Thread: any. */
void change_cells_out(
    struct buf *out, const struct change_view *v, const struct verdict_choice *choice, const char *public_url);
