/* The registry: the accelerators of all vendors' files and of the allowlist.
 *
 * Thread: that of config_load(); blocking. Owns: the main_file owns the accelerators. */
#ifndef CONFIG_REGISTRY_H
#define CONFIG_REGISTRY_H

#include "config/main_file.h"

/* Reads the files in accelerators.directory or in the checked-out folder of accelerators.git, and the
 * allowlist, with the secrets that they name, into main->c.accelerators, sorted by name. folder: that
 * of outpost.yml. Mistakes go to `problems`. */
void registry_read(const char *folder, struct main_file *main, struct problems *problems);

#endif
