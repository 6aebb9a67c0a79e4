/* X-Hub-Signature-256: proof that GitHub sent a body, checked before anything in the body
 * is looked at. */
#ifndef WEBHOOK_SIGNATURE_H
#define WEBHOOK_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

/* "sha256=" and 64 hexadecimal digits. ERR_INVALID: absent (NULL) or of another form. */
int signature_parse(const char *header, uint8_t ret[SHA256_BYTES]) MUST_CHECK;
/* Whether `signature` is the body's under h's key. Resets h first; compares in constant
 * time. */
bool signature_is_good(
    struct hmac *h, const void *body, size_t n, const uint8_t signature[SHA256_BYTES]);

#endif
