/* What the comment command `stress` starts. Private to store/. */
#ifndef STORE_STRESS_COMMAND_H
#define STORE_STRESS_COMMAND_H

#include "model/command.h"
#include "store/answers.h"
#include "store/db.h"

/* Stress runs that are under way: of one change, and of all. */
enum { STRESS_OF_A_CHANGE_MAX = 2, STRESS_MAX = 10 };

/* Plans the runs of c->command for the change at `at`, or says in c->result, and in c->hint, why it does not. A
 * member asks, about an open pull request. Inside a writer's transaction. */
void stress_command(
    struct db *d, const struct answer_place *at, struct asked_command *c, int64_t now_ms);

#endif
