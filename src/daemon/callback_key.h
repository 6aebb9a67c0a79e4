/* The key that signs callback tokens: made once, kept in state_dir (mode 0600). */
#ifndef DAEMON_CALLBACK_KEY_H
#define DAEMON_CALLBACK_KEY_H

#include <stdint.h>

#include "base/err.h"

enum { CALLBACK_KEY_BYTES = 32 };

/* Blocking: before the loop. state_dir exists. */
int callback_key_load(
    const char *state_dir, uint8_t key[CALLBACK_KEY_BYTES], struct error *e) MUST_CHECK;

#endif
