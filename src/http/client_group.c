#include "http/client_group.h"

#include <arpa/inet.h>

#include "http/server_internal.h"

/* ---- addresses ---- */

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

void http_address_map_v4(const void *v4, uint8_t ret[16])
{
	memcpy(ret, MAPPED, sizeof(MAPPED));
	memcpy(ret + sizeof(MAPPED), v4, 4);
}

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

/* Walks one header's list from its end while its addresses are trusted proxies. Returns true at the first that
 * is not, or at one that is not an address. */
static bool walk_forwarded(const struct http_server *s, const char *list, uint8_t address[16])
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

		if (strcasecmp(h->text + f->name, "x-forwarded-for") == 0 && walk_forwarded(s, h->text + f->value, ret))
			break;
	}
}

/* ---- groups and their amounts ---- */

struct group_entry {
	struct http_client_group group;
	int64_t amount; /* 0: the place is free */
};

/* Open addressing with linear probing; at most half of the places are taken. */
struct http_group_amounts {
	uint64_t seed[2];
	struct group_entry *at;
	size_t n, n_places; /* places: a power of two */
};

#define FIRST_PLACES 16

struct http_client_group http_client_group_of(const uint8_t address[16])
{
	struct http_client_group g = {0};
	bool is_v4 = memcmp(address, MAPPED, sizeof(MAPPED)) == 0;

	memcpy(g.address, address, is_v4 ? 16 : 8);
	return g;
}

bool http_client_group_equal(const struct http_client_group *a, const struct http_client_group *b)
{
	return memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* The finalizer of MurmurHash3. */
static uint64_t hash_mix(uint64_t h)
{
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
	return h ^ (h >> 33);
}

/* The place of the group's entry, unless another group's entry is already there. */
static size_t home_of(const struct http_group_amounts *t, const struct http_client_group *g)
{
	uint64_t half[2];

	memcpy(half, g->address, sizeof(half));
	return hash_mix(hash_mix(half[0] ^ t->seed[0]) ^ half[1] ^ t->seed[1]) & (t->n_places - 1);
}

struct http_group_amounts *http_group_amounts_new(void)
{
	struct http_group_amounts *t = xcalloc(1, sizeof(*t));

	random_bytes(t->seed, sizeof(t->seed));
	t->n_places = FIRST_PLACES;
	t->at = xcalloc(t->n_places, sizeof(*t->at));
	return t;
}

void http_group_amounts_free(struct http_group_amounts *t)
{
	if (!t)
		return;
	FREE_ALL(t->at, t);
}

/* The group's entry, or the free place where it belongs. */
static struct group_entry *entry_of(const struct http_group_amounts *t, const struct http_client_group *g)
{
	size_t i = home_of(t, g);

	while (t->at[i].amount && !http_client_group_equal(&t->at[i].group, g))
		i = (i + 1) & (t->n_places - 1);
	return &t->at[i];
}

/* Copies the entries above the limit into a table with n_places. */
static void amounts_rebuild(struct http_group_amounts *t, size_t n_places, int64_t limit)
{
	struct http_group_amounts next = *t;

	next.n = 0;
	next.n_places = n_places;
	next.at = xcalloc(n_places, sizeof(*next.at));
	for (size_t i = 0; i < t->n_places; i++) {
		if (t->at[i].amount == 0 || t->at[i].amount <= limit)
			continue;
		*entry_of(&next, &t->at[i].group) = t->at[i];
		next.n++;
	}
	free(t->at);
	*t = next;
}

void http_group_amounts_keep_above(struct http_group_amounts *t, int64_t limit)
{
	amounts_rebuild(t, t->n_places, limit);
}

int64_t http_group_amount(const struct http_group_amounts *t, const struct http_client_group *g)
{
	return entry_of(t, g)->amount;
}

void http_group_amount_add(struct http_group_amounts *t, const struct http_client_group *g, int64_t n)
{
	if (n == 0)
		return;
	if (2 * (t->n + 1) > t->n_places)
		amounts_rebuild(t, 2 * t->n_places, INT64_MIN);
	struct group_entry *e = entry_of(t, g);
	if (e->amount == 0) {
		e->group = *g;
		t->n++;
	}
	e->amount += n;
	if (e->amount == 0) {
		size_t mask = t->n_places - 1;
		size_t hole = (size_t)(e - t->at);

		/* Frees a place and moves up the entries that were pushed behind it. */
		t->n--;
		t->at[hole].amount = 0;
		for (size_t i = (hole + 1) & mask; t->at[i].amount; i = (i + 1) & mask) {
			size_t home = home_of(t, &t->at[i].group);

			if (((i - home) & mask) < ((i - hole) & mask))
				continue;
			t->at[hole] = t->at[i];
			t->at[i].amount = 0;
			hole = i;
		}
	}
}

bool http_group_amount_reserve(
    struct http_group_amounts *t, const struct http_client_group *g, int64_t n, int64_t limit)
{
	if (http_group_amount(t, g) > limit - n)
		return false;
	http_group_amount_add(t, g, n);
	return true;
}

size_t http_group_amounts_n(const struct http_group_amounts *t) { return t->n; }
