/* A snapshot's life inside config/: made once, then only shared. */
#ifndef CONFIG_SNAPSHOT_H
#define CONFIG_SNAPSHOT_H

#include "config/config.h"

/* Takes over everything that *content owns, and zeroes it. One reference. */
struct config *config_snapshot(struct config *content);
/* Frees what a snapshot owns, secrets wiped; not the struct. */
void config_release(struct config *c);

#endif
