#include "runners/credential_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

static int compare_hashes(const void *a, const void *b)
{
	const struct credential_entry *x = a, *y = b;

	return memcmp(x->row.hash, y->row.hash, SHA256_BYTES);
}

struct credential_entry *credential_table_find(
    const struct credential_table *t, const uint8_t hash[SHA256_BYTES])
{
	struct credential_entry key;

	memcpy(key.row.hash, hash, SHA256_BYTES);
	return t->n ? bsearch(&key, t->entries, t->n, sizeof(key), compare_hashes) : NULL;
}

struct credential_entry *credential_table_find_id(const struct credential_table *t, int64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->entries[i].row.id == id)
			return &t->entries[i];
	return NULL;
}

void credential_table_release(struct credential_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->entries[i].row.accelerator);
		free(t->entries[i].row.name);
		free(t->entries[i].row.last_address);
	}
	free(t->entries);
	*t = (struct credential_table){0};
}

static bool is_same_machine(const struct token_row *a, const struct token_row *b)
{
	return a->kind == b->kind && str_eq(a->accelerator, b->accelerator) &&
	       str_eq(a->name, b->name);
}

static void keep_uses(const struct credential_table *from, struct credential_table *to)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct credential_entry *old = &from->entries[i];
		struct credential_entry *same = credential_table_find(to, old->row.hash);

		if (!same)
			continue;
		same->used_ms = old->used_ms;
		same->is_use_unwritten = old->is_use_unwritten;
		memcpy(same->address, old->address, sizeof(same->address));
	}
}

void credential_table_take(struct credential_table *t, struct list_tokens *list)
{
	struct credential_table taken = {
	    .entries = xcalloc(list->n ? list->n : 1, sizeof(*taken.entries)), .n = list->n};

	for (size_t i = 0; i < list->n; i++) {
		const struct token_row *row = &list->list[i];
		bool is_runner = row->kind == TOKEN_RUNNER;

		/* A machine's tokens follow each other in the list. */
		if (is_runner && !(i > 0 && is_same_machine(&taken.entries[i - 1].row, row)))
			taken.n_machines++;
		taken.entries[i] = (struct credential_entry){
		    .row = *row, .machine = is_runner ? taken.n_machines - 1 : -1};
		list->list[i] = (struct token_row){0};
	}
	qsort(taken.entries, taken.n, sizeof(*taken.entries), compare_hashes);
	keep_uses(t, &taken);
	credential_table_release(t);
	*t = taken;
}

int credential_table_n_machines(const struct credential_table *t, int64_t since_wall_ms)
{
	bool *is_seen = xcalloc((size_t)t->n_machines + 1, sizeof(*is_seen));
	int n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct credential_entry *e = &t->entries[i];
		bool is_late = e->used_ms < since_wall_ms && e->row.last_used_ms < since_wall_ms;

		if (e->machine < 0 || is_late || is_seen[e->machine])
			continue;
		is_seen[e->machine] = true;
		n++;
	}
	free(is_seen);
	return n;
}
