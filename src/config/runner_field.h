/* `runners:` of an accelerator's file. */
#ifndef CONFIG_RUNNER_FIELD_H
#define CONFIG_RUNNER_FIELD_H

#include "config/fields.h"

extern const struct mapping RUNNER_MAPPING;
field_read_fn field_runners; /* target: struct accelerator_file */

#endif
