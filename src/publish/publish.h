/* Writes what people see on GitHub: the comment and the check runs of each pull request, the answers to commands, and the
 * issues about a red push. The store requests each of these as an outbox row, and the engine (outbox/engine.h) claims the row.
 * The publisher renders what is known then, and writes it if GitHub shows something else; it edits a comment not more often
 * than comment.min_interval.
 *
 * A claimed row is the right to write, so each pull request has one writer. The publisher asks GitHub for its own comment
 * before it creates one, so a crash or a lost answer never makes two. Thread: loop, every function. */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "github/github.h"
#include "loop/loop.h"
#include "views/change.h"

struct publisher;

/* Everything is borrowed and outlives the publisher. */
struct publish_deps {
	struct loop *loop;
	struct store *store;
	struct github *github;
};

/* Starts at once. Takes its own reference to the snapshot. */
struct publisher *publish_new(const struct publish_deps *deps, struct config *c);
/* For every comment that is begun from now on. Takes its own reference. */
void publish_configure(struct publisher *p, struct config *c);
/* Claims nothing more, waits a moment for running writes, cancels the rest (they are due again after the next start), then
 * runs on_closed once. Close it before the github and the store. Asynchronous; on_closed comes within 4 s if the store
 * answers. */
void publish_close(struct publisher *p, void (*on_closed)(void *owner), void *owner);
/* After on_closed, and after store_close(), because the store notifies its subscribers until then. NULL is fine. */
void publish_free(struct publisher *p);

/* ---- the preview: the comment of a pull request as it would be written now; writes nothing ---- */
enum preview_format { PREVIEW_MARKDOWN, PREVIEW_TERMINAL, PREVIEW_TERMINAL_COLOUR };

struct preview {
	/* in */
	int64_t number;
	enum preview_format format;
	int width; /* of the terminal; 0: 80 */
	/* Runs once, on the loop, never inside publish_preview(). It may free the preview. */
	void (*done)(struct preview *preview);
	void *owner; /* the caller's own */
	/* out */
	int err; /* ERR_NOT_FOUND: no such pull request is known; or the store's error */
	struct error why;
	char *text; /* free(); NULL unless err is 0 */
	/* the publisher's own */
	struct publisher *publisher;
	struct config *config;
	struct get_change change;
};
/* 0: the preview is in use until done. ERR_BUSY, ERR_CLOSING: it is not. */
int publish_preview(struct publisher *p, struct preview *preview) MUST_CHECK;

/* ---- totals since the start, for /metrics and outpostctl status ---- */
struct publish_counters {
	int64_t n_created, n_edited;
	int64_t n_unchanged; /* requests that led to no write: the text is the same */
	int64_t n_put_off;   /* requests that waited for comment.min_interval */
	int64_t n_paced;     /* writes that waited for their share of GitHub's budget */
	int64_t n_checks_created;
	int64_t n_checks_written; /* created ones included */
	int64_t n_retries;
	int64_t n_dead;       /* given up: GitHub refused, or too many attempts */
	char last_error[512]; /* of the last retry or refusal; "": none */
	int64_t last_error_wall_ms;
};
void publish_read_counters(const struct publisher *p, struct publish_counters *ret);
