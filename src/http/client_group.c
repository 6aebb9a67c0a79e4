#include "http/client_group.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"

struct entry {
	struct http_client_group group;
	int64_t amount; /* 0: the place is free */
};

/* Open addressing with linear probing; at most half of the places are taken. */
struct http_group_amounts {
	uint64_t seed[2];
	struct entry *at;
	size_t n, n_places; /* places: a power of two */
};

#define FIRST_PLACES 16

struct http_client_group http_client_group_of(const uint8_t address[16])
{
	static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};
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
static uint64_t mixed(uint64_t h)
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
	return mixed(mixed(half[0] ^ t->seed[0]) ^ half[1] ^ t->seed[1]) & (t->n_places - 1);
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
	free(t->at);
	free(t);
}

/* The group's entry, or the free place where it belongs. */
static struct entry *find(const struct http_group_amounts *t, const struct http_client_group *g)
{
	size_t i = home_of(t, g);

	while (t->at[i].amount && !http_client_group_equal(&t->at[i].group, g))
		i = (i + 1) & (t->n_places - 1);
	return &t->at[i];
}

/* Copies the entries above the limit into a table with n_places. */
static void rebuild(struct http_group_amounts *t, size_t n_places, int64_t limit)
{
	struct http_group_amounts next = *t;

	next.n = 0;
	next.n_places = n_places;
	next.at = xcalloc(n_places, sizeof(*next.at));
	for (size_t i = 0; i < t->n_places; i++) {
		if (t->at[i].amount == 0 || t->at[i].amount <= limit)
			continue;
		*find(&next, &t->at[i].group) = t->at[i];
		next.n++;
	}
	free(t->at);
	*t = next;
}

void http_group_amounts_keep_above(struct http_group_amounts *t, int64_t limit)
{
	rebuild(t, t->n_places, limit);
}

/* Frees a place and moves up the entries that were pushed behind it. */
static void remove_entry(struct http_group_amounts *t, struct entry *e)
{
	size_t mask = t->n_places - 1;
	size_t hole = (size_t)(e - t->at);

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

int64_t http_group_amount(const struct http_group_amounts *t, const struct http_client_group *g)
{
	return find(t, g)->amount;
}

void http_group_amount_add(
    struct http_group_amounts *t, const struct http_client_group *g, int64_t n)
{
	struct entry *e;

	if (n == 0)
		return;
	if (2 * (t->n + 1) > t->n_places)
		rebuild(t, 2 * t->n_places, INT64_MIN);
	e = find(t, g);
	if (e->amount == 0) {
		e->group = *g;
		t->n++;
	}
	e->amount += n;
	if (e->amount == 0)
		remove_entry(t, e);
}

bool http_group_amount_take(
    struct http_group_amounts *t, const struct http_client_group *g, int64_t n, int64_t limit)
{
	if (http_group_amount(t, g) > limit - n)
		return false;
	http_group_amount_add(t, g, n);
	return true;
}

size_t http_group_amounts_n(const struct http_group_amounts *t)
{
	return t->n;
}
