/* Networks in CIDR notation, as configuration writes them. */
#ifndef CONFIG_NETWORK_H
#define CONFIG_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"

struct network_list {
	struct network *items;
	size_t n;
};

/* "10.0.0.0/8", "fd00::/8" or a lone address. ERR_INVALID with the reason in `e`, also
 * when bits are set behind the prefix. */
int network_parse(const char *s, struct network *ret, struct error *e) MUST_CHECK;
/* A literal IPv4 or IPv6 address without brackets, IPv4 mapped. */
int address_parse(const char *s, uint8_t ret[16]) MUST_CHECK;

#endif
