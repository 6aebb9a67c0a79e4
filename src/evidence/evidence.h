/* Asks GitHub for the facts that attribution needs and the database does not have: the merge base of a red change and the
 * files that it touches. Then the store attributes the change (verdict/attribution.h).
 *
 * It works only from the rows of attribution_due, so a crash loses nothing. It asks once for each head, with growing pauses
 * while GitHub does not answer.
 *
 * Thread: loop. Owns: its gatherings and their requests; the caller owns the struct evidence and frees it. */
#pragma once

#include "db/store.h"
#include "github/github.h"
#include "loop/loop.h"

struct evidence;

struct evidence_deps { /* borrowed; they outlive it */
	struct loop *loop;
	struct store *store;
	struct github *github;
};

/* Starts at once. */
struct evidence *evidence_new(const struct evidence_deps *deps);
/* Cancels the requests to GitHub, then runs on_closed once. Asynchronous. */
void evidence_close(struct evidence *e, void (*on_closed)(void *owner), void *owner);
/* After on_closed and store_close(). NULL is fine. */
void evidence_free(struct evidence *e);

struct evidence_counters {
	int64_t n_attributed, n_moved; /* attributed changes; those of them with a changed cell */
	int64_t n_asked, n_failures;   /* requests to GitHub */
	int n_in_hand;                 /* changes whose facts are being gathered */
};
void evidence_read_counters(const struct evidence *e, struct evidence_counters *ret);

/* ---- comparing.c: asks GitHub for the commits between the last good and the first bad periodic run if the stored pushes
 * lack some of them (history/commits_between.h). It asks one question at a time, with growing pauses while GitHub does not
 * answer, and keeps an answer for good. Nothing waits for the answer: until then, pages link to GitHub's comparison ---- */
struct comparing;

/* Starts at once; looks again after each STORE_ATTRIBUTION. */
struct comparing *comparing_new(const struct evidence_deps *deps);
/* Cancels the request, then runs on_closed once. Asynchronous. */
void comparing_close(struct comparing *c, void (*on_closed)(void *owner), void *owner);
void comparing_free(struct comparing *c); /* after on_closed and store_close(); NULL is fine */
