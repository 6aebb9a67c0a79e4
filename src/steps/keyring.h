/* The kernel's session keyring (keyrings(7)): a process hands it down to all that it starts, so a
 * Kerberos ticket or another key of the service would reach the steps, and a key that a step
 * leaves there would reach later jobs. */
#ifndef STEPS_KEYRING_H
#define STEPS_KEYRING_H

#include "base/err.h"

/* Gives this process, and what it starts from now on, a new and empty session keyring. 0 also
 * where the kernel gives this process no access to keyrings at all: then what it starts has none
 * either. The user keyring is not the session's: without a sandbox it stays within reach. */
int keyring_start_session(struct error *e) MUST_CHECK;

#endif
