/* Networks in CIDR notation. Thread: any. Owns: the caller owns a list's items. */
#pragma once

struct network { /* CIDR; IPv4 as v4-mapped IPv6 */
	uint8_t address[16];
	int prefix_bits; /* 0…128 */
};

struct network_list {
	struct network *items;
	size_t n;
};

/* Parses "10.0.0.0/8", "fd00::/8" or a single address. ERR_INVALID with the reason in `e`, also if bits after the
 * prefix are set. */
int network_parse(const char *s, struct network *ret, struct error *e) MUST_CHECK;
/* A literal IPv4 or IPv6 address without brackets, IPv4 mapped. */
int address_parse(const char *s, uint8_t ret[16]) MUST_CHECK;
/* True if `address` (16 bytes, IPv4 mapped) lies in one of the networks. */
bool network_contains(const struct network *list, size_t n, const uint8_t address[16]);
/* Whether Outpost may connect to this address of the URL's host: it is in one of the allowed networks, or it is public and
 * the URL begins with https. */
bool network_permits(const struct network *allowed, size_t n, const char *url, const uint8_t address[16]);
/* True for private, loopback, link-local, unspecified, multicast and other addresses that
 * are not public (IANA special-purpose registries). `address` as above. */
bool network_is_private(const uint8_t address[16]);
