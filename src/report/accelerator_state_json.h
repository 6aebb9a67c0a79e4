/* An accelerator's state as every answer has it, words included: who shows it decides nothing. */
#ifndef REPORT_ACCELERATOR_STATE_JSON_H
#define REPORT_ACCELERATOR_STATE_JSON_H

#include <jansson.h>

#include "model/accelerator_state.h"

/* A new object:
 *
 *   {"name": "red", "word": "red", "symbol": "✗", "tone": "fail",
 *    "text": "red", "since": TIME or null, "notes": ["overdue", "no report", "not counted"]}
 *
 * name, word, symbol and tone are the status's (accelerator_words()). For people: text, where since is
 * known " for " and its age, then each note behind a comma. */
json_t *accelerator_state_json(const struct accelerator_state *s);
/* Adds what all answers about an accelerator have in common: state, red_since, red_by, overdue,
 * pass_rate (of its runs of pushes in 30 days) and last_report. */
void standing_add_json(json_t *obj, const struct standing *s);

#endif
