/* The key that signs callback tokens: made once, kept in state_dir (mode 0600). */
#ifndef DAEMON_CALLBACK_KEY_H
#define DAEMON_CALLBACK_KEY_H

#include "base/err.h"
#include "base/secret.h"

/* Blocking: before the loop. state_dir exists. */
int callback_key_load(const char *state_dir, struct secret **ret, struct error *e) MUST_CHECK;

#endif
