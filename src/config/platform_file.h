/* Reads `platform:` of an accelerator's file, the content of the compute-platforms page. Vendors write it on their first
 * day and edit it by pull requests, so every mistake gets a complete message.
 *
 * Thread: the one that reads. Owns: the accelerator owns the result. */
#ifndef CONFIG_PLATFORM_FILE_H
#define CONFIG_PLATFORM_FILE_H

#include "config/fields.h"

extern const struct mapping PLATFORM_MAPPING;
field_read_fn field_platform; /* target: struct platform *, owned; NULL unless a map is there */

#endif
