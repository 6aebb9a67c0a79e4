/* The credential that goes out with a dispatch and comes back with its reports: signed by
 * this server, bound to one dispatch and accelerator, with an end. Nothing is stored.
 *
 * Text: "oct1." dispatch "." accelerator "." expiry (seconds) "." base64url(HMAC-SHA256). */
#ifndef MODEL_CALLBACK_TOKEN_H
#define MODEL_CALLBACK_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"

#define CALLBACK_TOKEN_PREFIX "oct1."

/* free(). */
char *callback_token_make(const struct secret *key, const char *dispatch_id,
    const char *accelerator, int64_t expires_wall_ms);
/* Which dispatch a token says it is for, to be checked against: nothing is verified here. NULL:
 * it is no such token. free(). */
char *callback_token_dispatch(const char *token);
/* ERR_AUTH: not one of ours, or for another dispatch; ERR_TIMEOUT: expired. On 0
 * *ret_accelerator is to be freed. */
int callback_token_check(const struct secret *key, const char *token, const char *dispatch_id,
    int64_t now_wall_ms, char **ret_accelerator) MUST_CHECK;

#endif
