/* `outpostd --check`, and the same checks for a start and a reload. */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include "base/buf.h"
#include "config/config.h"

/* A line in the log for each file of the configuration that should be readable for fewer users, and for each key that
 * has no effect. */
void daemon_log_warnings(const struct config *c);
/* config_load_with() plus what only higher layers can tell: that the TLS pair is one. Messages
 * as there. Blocking: before the loop, or in the pool. */
int daemon_load_config(const char *path, const struct registry_files *files, struct config **ret,
    struct buf *messages) MUST_CHECK;
/* The same at a start, with the registry's last good commit. When that does not check any more, the
 * messages end with how to start without it. */
int daemon_load_first_config(
    const char *path, struct config **ret, struct buf *messages) MUST_CHECK;

/* Prints what is wrong on stdout and a summary on stderr. Returns the exit code, 0 or 1. */
int daemon_check(const char *config_path);

#endif
