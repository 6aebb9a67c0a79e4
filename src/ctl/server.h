/* Talks to the daemon's control socket. outpostctl never opens the database. */
#ifndef CTL_SERVER_H
#define CTL_SERVER_H

#include "base/json.h"
#include "ctl/command.h"

/* One exchange. Returns EXIT_DONE and a new reference in *ret, or EXIT_FAILED after having
 * said on stderr what went wrong. body may be NULL (it is not stolen). */
int server_ask(
    const struct ctl *ctl, const char *method, const char *path, const json_t *body, json_t **ret);
/* Prints v as indented JSON on stdout and drops the reference. Returns EXIT_DONE. */
int server_print_json(json_t *v);

#endif
