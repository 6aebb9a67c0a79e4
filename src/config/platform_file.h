/* `platform:` of an accelerator's file: what the compute-platforms page shows. A vendor writes it on
 * his first day and edits it by a pull request, so what is wrong with it is told in full.
 *
 * Thread: the one that reads. */
#ifndef CONFIG_PLATFORM_FILE_H
#define CONFIG_PLATFORM_FILE_H

#include "config/fields.h"

extern const struct mapping PLATFORM_MAPPING;
field_read_fn field_platform; /* target: struct platform *, owned; NULL unless a map is there */

#endif
