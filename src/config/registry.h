/* Who takes part: the accelerators of all vendors' files and of the allowlist, together. */
#ifndef CONFIG_REGISTRY_H
#define CONFIG_REGISTRY_H

#include "config/main_file.h"

/* Reads every file below accelerators.directory or in the checked-out folder of accelerators.git,
 * and the allowlist, with the secrets they name, into main->c.accelerators, sorted by name. folder: outpost.yml's. Mistakes go to
 * `problems`. */
void registry_read(const char *folder, struct main_file *main, struct problems *problems);

#endif
