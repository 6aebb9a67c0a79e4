/* The bodies of a heartbeat and of a return, checked: pure, bytes in, struct out. */
#ifndef RUNNERS_LEASE_REQUEST_H
#define RUNNERS_LEASE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { LEASE_ID_MAX_BYTES = 64, LEASE_REASON_MAX_BYTES = 160 };

/* 1 to 64 letters, digits and '-'. */
bool lease_id_is_valid(const char *id);
/* {"wait": SECONDS}; without it, or without a body, 0. ERR_INVALID names what is wrong. */
int lease_wait_parse(const char *body, size_t n, int *ret_wait_s, struct error *e) MUST_CHECK;
/* {"reason": TEXT}; without it, "". One line, cut to size; free() on 0. */
int lease_reason_parse(const char *body, size_t n, char **ret, struct error *e) MUST_CHECK;

#endif
