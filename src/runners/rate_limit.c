#include "runners/rate_limit.h"

#include <ctype.h>
#include <strings.h>

#include "base/alloc.h"

enum { WINDOW_MS = 60 * 1000 };

struct entry {
	char *key; /* owned; of an older window unless `window` is the current one */
	int64_t window;
	int n_calls;
};

/* Open addressing without deletion: a new window makes every entry stale at once. */
struct rate_limit {
	int calls_per_minute;
	size_t keys_max, n_keys;
	size_t n_slots; /* at least twice keys_max, so a search ends soon */
	struct entry *slots;
	int64_t window; /* counts up; 0 before the first call */
	int64_t window_end_ms;
};

struct rate_limit *rate_limit_new(int calls_per_minute, size_t keys_max)
{
	struct rate_limit *l = xcalloc(1, sizeof *l);

	l->calls_per_minute = calls_per_minute;
	l->keys_max = keys_max;
	l->n_slots = 2 * keys_max;
	l->slots = xcalloc(l->n_slots, sizeof *l->slots);
	return l;
}

void rate_limit_free(struct rate_limit *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_slots; i++)
		free(l->slots[i].key);
	free(l->slots);
	free(l);
}

static size_t hash(const char *key)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *key; key++)
		h = (h ^ (uint64_t)tolower((unsigned char)*key)) * UINT64_C(1099511628211);
	return (size_t)h;
}

/* The entry of this window, made when there is room, else NULL. */
static struct entry *find(struct rate_limit *l, const char *key)
{
	size_t at = hash(key) % l->n_slots;
	struct entry *entry = &l->slots[at];

	while (entry->window == l->window && strcasecmp(entry->key, key) != 0) {
		at = (at + 1) % l->n_slots;
		entry = &l->slots[at];
	}
	if (entry->window == l->window)
		return entry;
	if (l->n_keys == l->keys_max)
		return NULL;
	l->n_keys++;
	free(entry->key);
	*entry = (struct entry){.key = xstrdup(key), .window = l->window};
	return entry;
}

bool rate_limit_take(
    struct rate_limit *l, const char *key, int64_t now_mono_ms, int *ret_retry_after_s)
{
	struct entry *entry;

	if (l->window == 0 || now_mono_ms >= l->window_end_ms) {
		l->window++;
		l->window_end_ms = now_mono_ms + WINDOW_MS;
		l->n_keys = 0;
	}
	entry = find(l, key);
	if (entry && entry->n_calls < l->calls_per_minute) {
		entry->n_calls++;
		return true;
	}
	*ret_retry_after_s = (int)((l->window_end_ms - now_mono_ms + 999) / 1000);
	return false;
}
