/* The space that the database takes, by table and by accelerator. It reads the whole file, so it takes a second for each gigabyte,
 * and pauses often. Thread: loop; no page waits for it. */
#pragma once

#include "db/db.h"
#include "db/store.h"

struct accelerator_space {
	char *name;
	int64_t n_jobs, n_results;
	int64_t n_rows;       /* results with a row of their own */
	int64_t packed_bytes; /* of the others */
	int64_t bytes;        /* its share of the tables packed_job and result */
};

struct get_space {
	struct store_query q;
	/* out; get_space_release() */
	int64_t file_bytes, free_bytes;
	bool can_shrink;
	struct table_bytes *tables; /* the largest first */
	size_t n_tables;
	struct accelerator_space *accelerators; /* the same */
	size_t n_accelerators;
};
/* ERR_CANCELLED: the store is closing. */
int store_get_space(struct store *s, struct get_space *q) MUST_CHECK;
void get_space_release(struct get_space *q);
