/* What is put right in a text before libyaml reads it. */
#ifndef CONFIG_YAML_TEXT_H
#define CONFIG_YAML_TEXT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the text without a byte order mark, and with quotes round the address in a line
 * `listen: [::1]:8080`, which without them is never YAML. Lines stay where they are. */
void yaml_text_prepare(const char *text, size_t n, struct buf *out);

#endif
