#include "config/network.h"

#include <arpa/inet.h>

static const uint8_t MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

int address_parse(const char *s, uint8_t ret[16])
{
	if (inet_pton(AF_INET6, s, ret) == 1)
		return 0;
	memcpy(ret, MAPPED, sizeof(MAPPED));
	return inet_pton(AF_INET, s, ret + 12) == 1 ? 0 : ERR_INVALID;
}

static bool has_prefix(const uint8_t address[16], const struct network *n)
{
	int whole = n->prefix_bits / 8, rest = n->prefix_bits % 8;

	if (memcmp(address, n->address, (size_t)whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ n->address[whole]) >> (8 - rest) == 0;
}

int network_parse(const char *s, struct network *ret, struct error *e)
{
	const char *slash = strchr(s, '/');
	char host[INET6_ADDRSTRLEN];
	size_t n = slash ? (size_t)(slash - s) : strlen(s);

	if (n >= sizeof(host))
		return error_set(e, ERR_INVALID, "is not an address");
	memcpy(host, s, n);
	host[n] = '\0';
	if (address_parse(host, ret->address))
		return error_set(e, ERR_INVALID, "is not an address; write it like 10.0.0.0/8 or fd00::/8");
	int width = strchr(host, ':') ? 128 : 32;
	int64_t bits = width;
	if (slash && (parse_int64(slash + 1, &bits) || bits < 0 || bits > width))
		return error_set(e, ERR_INVALID, "has a prefix that is not 0 to %d", width);
	ret->prefix_bits = (int)bits + 128 - width;
	for (int i = ret->prefix_bits; i < 128; i++)
		if (ret->address[i / 8] >> (7 - i % 8) & 1)
			return error_set(e, ERR_INVALID, "has bits set after its prefix");
	return 0;
}

bool network_contains(const struct network *list, size_t n, const uint8_t address[16])
{
	for (size_t i = 0; i < n; i++)
		if (has_prefix(address, &list[i]))
			return true;
	return false;
}

/* The entries of IANA's IPv4 registry that are not globally reachable, and multicast. The address fills the first four
 * bytes. */
static const struct network NOT_PUBLIC_4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* carriers' NAT */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local, where clouds keep their metadata */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocol assignments */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* 6to4 relays */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 4},           /* multicast */
    {{240}, 4},           /* reserved, broadcast */
};

/* The same for IPv6; only 2000::/3 is allocated. */
static const struct network NOT_PUBLIC_6[] = {
    {{0x20, 0x01, 0x00}, 23},       /* protocol assignments: Teredo, ORCHID, benchmarks */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x3f, 0xff, 0x00}, 20},       /* documentation */
};

static bool is_private_4(const uint8_t v4[4])
{
	uint8_t padded[16] = {v4[0], v4[1], v4[2], v4[3]};

	return network_contains(NOT_PUBLIC_4, ARRAY_LEN(NOT_PUBLIC_4), padded);
}

bool network_is_private(const uint8_t address[16])
{
	static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	static const uint8_t six_to_four[2] = {0x20, 0x02};

	if (memcmp(address, MAPPED, sizeof(MAPPED)) == 0)
		return is_private_4(address + 12);
	/* A translator on the path would connect to the IPv4 address inside. */
	if (memcmp(address, nat64, sizeof(nat64)) == 0)
		return is_private_4(address + 12);
	if (memcmp(address, six_to_four, sizeof(six_to_four)) == 0)
		return is_private_4(address + 2);
	if (address[0] >> 5 != 1) /* not 2000::/3: unspecified, loopback, ULA, link-local, … */
		return true;
	return network_contains(NOT_PUBLIC_6, ARRAY_LEN(NOT_PUBLIC_6), address);
}

bool network_permits(const struct network *allowed, size_t n, const char *url, const uint8_t address[16])
{
	return network_contains(allowed, n, address) ||
	       (strncasecmp(url, "https:", 6) == 0 && !network_is_private(address));
}
