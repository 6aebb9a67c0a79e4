/* What is the same in two messages of one failure: numbers, addresses, paths, times, SHAs and ids
 * are taken out before messages are compared. Pure. */
#ifndef MODEL_FAILURE_TEXT_H
#define MODEL_FAILURE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* The message as it is compared: one line, cut to 512 bytes; free(). Idempotent. */
char *failure_text_normalise(const char *message);
/* Would fit any failure ("Process completed with exit code 1", "Killed", "Timeout", an exception's
 * bare name, or nothing but what was taken out), so it is never evidence. NULL is generic. */
bool failure_text_is_generic(const char *message);
/* Equal for messages that normalise alike; 0 for generic ones. The first 8 bytes of a SHA-256. */
int64_t failure_text_key(const char *message);
/* The same for generic ones, too: that they differ shows something, that they are alike does not. 0:
 * there is none. */
int64_t failure_text_hash(const char *message);

#endif
