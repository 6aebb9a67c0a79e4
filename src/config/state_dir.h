/* Where a daemon is found, by its state and by its address, read from its outpost.yml and nothing
 * else: for programs that talk to it. They need none of its secrets, and must work when the file
 * on disk has a mistake which the daemon, with the older one in force, refused. */
#ifndef CONFIG_STATE_DIR_H
#define CONFIG_STATE_DIR_H

#include "base/err.h"

/* free(). */
int config_state_dir(const char *path, char **ret, struct error *e) MUST_CHECK;
/* As it stands there. free(). */
int config_public_url(const char *path, char **ret, struct error *e) MUST_CHECK;

#endif
