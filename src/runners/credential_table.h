/* The valid tokens, by hash and by id, with what is known of their use. Pure. */
#ifndef RUNNERS_CREDENTIAL_TABLE_H
#define RUNNERS_CREDENTIAL_TABLE_H

#include <netinet/in.h>

#include "store/tokens.h"

struct credential_entry {
	struct token_row row; /* owned */
	int machine;          /* which of the runners' machines; -1: an API token */
	int64_t used_ms;      /* since the start; 0: not */
	bool is_use_unwritten;
	char address[INET6_ADDRSTRLEN];
};

struct credential_table {
	struct credential_entry *entries; /* by hash */
	size_t n;
	int n_machines;
};

/* The list's rows (as store_list_tokens() sorts them) become the table; they are taken over.
 * The uses of those that stay are kept. */
void credential_table_take(struct credential_table *t, struct list_tokens *list);
void credential_table_release(struct credential_table *t);
/* NULL: there is none. */
struct credential_entry *credential_table_find(
    const struct credential_table *t, const uint8_t hash[SHA256_BYTES]);
struct credential_entry *credential_table_find_id(const struct credential_table *t, int64_t id);
int credential_table_n_machines(const struct credential_table *t, int64_t since_wall_ms);

#endif
