/* An accelerator as the list of all and its own page show it: its state on upstream's branch, its figures, and its level. Thread: the
 * query runs on a reader; the JSON may be made by any. */
#pragma once

#include "config/config.h"
#include "store/registry.h"

/* Each json_t * is a new reference. */

/* f NULL: no figures of it are known yet. At L1 it shows only its registration. */
json_t *accelerator_json(const struct config *c, const struct accelerator *a, const struct accelerator_figures *f);
/* A state as every answer has it:
 *
 *   {"name": "red", "word": "red", "symbol": "✗", "tone": "fail",
 *    "text": "red", "since": TIME or null, "notes": ["overdue", "no report", "not counted"]}
 *
 * For people: the text, then " for " and the age if `since` is known, then each note after a comma. */
json_t *accelerator_state_json(const struct accelerator_state *s);
/* Its first four members. */
json_t *accelerator_words_json(enum accelerator_status s);
/* Adds the common members of all answers about an accelerator: state, red_since, red_by, overdue, pass_rate (of its runs
 * of pushes in 30 days) and last_report. */
void standing_add_json(json_t *obj, const struct standing *s);

/* ---- the repositories at L3, each with its own numbers: one accelerator may have several ---- */

#define LEVEL_REPOSITORY_RECORD(F, S)                                                                                  \
	F(S, TEXT, accelerator, NULL, "a.name", "")                                                                    \
	F(S, TEXT, runner, NULL, "r.name", "")                                                                         \
	F(S, TEXT, repository, NULL, "r.target", "")
struct level_repository {
	RECORD_MEMBERS(LEVEL_REPOSITORY_RECORD)
	struct level_numbers numbers;
};
struct list_level_status {
	struct store_query q;
	int64_t now_ms;
	struct level_repository *list; /* out; list_level_status_release() */
	size_t n;
};
int store_list_level_status(struct store *s, struct list_level_status *q) MUST_CHECK;
void list_level_status_release(struct list_level_status *q);
