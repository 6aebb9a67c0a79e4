#include "http/client_address.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "http/server_internal.h"

static const uint8_t MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void http_address_format(const uint8_t address[16], char out[INET6_ADDRSTRLEN])
{
	if (memcmp(address, MAPPED, sizeof(MAPPED)) == 0)
		inet_ntop(AF_INET, address + 12, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, out, INET6_ADDRSTRLEN);
}

int http_address_parse(const char *s, size_t n, uint8_t ret[16])
{
	char text[INET6_ADDRSTRLEN + 8];
	const char *colon = memchr(s, ':', n);

	if (n && s[0] == '[') {
		const char *end = memchr(s, ']', n);

		if (!end)
			return ERR_INVALID;
		s++;
		n = (size_t)(end - s);
	} else if (colon && !memchr(colon + 1, ':', n - (size_t)(colon + 1 - s))) {
		n = (size_t)(colon - s); /* one colon: IPv4 and a port */
	}
	if (n == 0 || n >= sizeof(text))
		return ERR_INVALID;
	memcpy(text, s, n);
	text[n] = '\0';
	if (inet_pton(AF_INET, text, ret + 12) == 1) {
		memcpy(ret, MAPPED, sizeof(MAPPED));
		return 0;
	}
	return inet_pton(AF_INET6, text, ret) == 1 ? 0 : ERR_INVALID;
}

/* Walks one header's list from its end while addresses are trusted proxies. Returns true
 * when the walk is over. */
static bool walk_list(const struct http_server *s, const char *list, uint8_t address[16])
{
	size_t n = strlen(list);

	while (n) {
		size_t from = n, end = n;
		uint8_t next[16];

		while (from && list[from - 1] != ',')
			from--;
		n = from ? from - 1 : 0;
		while (from < end && (list[from] == ' ' || list[from] == '\t'))
			from++;
		while (end > from && (list[end - 1] == ' ' || list[end - 1] == '\t'))
			end--;
		if (http_address_parse(list + from, end - from, next))
			return true;
		memcpy(address, next, 16);
		if (!s->is_trusted(address, s->trusted_owner))
			return true;
	}
	return false;
}

void http_client_address_find(const struct http_conn *c, const struct http_head *h, uint8_t ret[16])
{
	const struct http_server *s = c->server;

	memcpy(ret, c->peer, 16);
	if (c->is_unix || !s->is_trusted || !s->is_trusted(ret, s->trusted_owner))
		return;
	/* Several headers are one list, in their order. */
	for (size_t i = h->n_fields; i-- > 0;) {
		const struct http_field *f = &h->fields[i];

		if (strcasecmp(h->text + f->name, "x-forwarded-for") == 0 &&
		    walk_list(s, h->text + f->value, ret))
			break;
	}
}
