#include "store/space.h"

#include "db/record_rows.h"
#include "db/store_internal.h"

enum { JOBS_AT_ONCE = 2000 };

static struct accelerator_space *space_of(struct get_space *q, const char *name)
{
	struct accelerator_space *a;

	for (size_t i = 0; i < q->n_accelerators; i++)
		if (strcmp(q->accelerators[i].name, name) == 0)
			return &q->accelerators[i];
	a = ARRAY_PUSH(q->accelerators, q->n_accelerators);
	*a = (struct accelerator_space){.name = xstrdup(name)};
	return a;
}

#define JOBS_SPACE_RECORD(F, S)                                                                                        \
	F(S, INT, n_jobs, NULL, "COUNT(*)", "")                                                                        \
	F(S, INT, n_results, NULL, "SUM(n_tests)", "")
RECORD_LOCAL(jobs_space, JOBS_SPACE_RECORD)

#define PACKED_SPACE_RECORD(F, S)                                                                                      \
	F(S, INT, n_unread, NULL, "SUM(p.n - p.n_rows)", "Results without a row.")                                     \
	F(S, INT, n_bytes, NULL, "SUM(length(p.cells))", "")
RECORD_LOCAL(packed_space, PACKED_SPACE_RECORD)

/* Adds the jobs with these ids. */
static void add_jobs_space(struct get_space *q, const struct view *d, int64_t after_id, int64_t last_id)
{
	struct jobs_space jobs;
	struct packed_space packed;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY(
		"accelerator", JOBS_SPACE_RECORD, "FROM job WHERE id > ?1 AND id <= ?2 GROUP BY accelerator"),
	    V_INT(after_id), V_INT(last_id));

	while (rows_next(r)) {
		struct accelerator_space *a = space_of(q, rows_key(r));

		record_read(r, &jobs_space_record, &jobs);
		a->n_jobs += jobs.n_jobs;
		a->n_results += jobs.n_results;
		a->n_rows += jobs.n_results;
	}
	r = db_rows(d,
	    RECORD_QUERY_BY("j.accelerator", PACKED_SPACE_RECORD,
		"FROM job j CROSS JOIN packed_job p ON p.job_id = j.id WHERE j.id > ?1 AND j.id <= ?2"
		" GROUP BY j.accelerator"),
	    V_INT(after_id), V_INT(last_id));
	while (rows_next(r)) {
		struct accelerator_space *a = space_of(q, rows_key(r));

		record_read(r, &packed_space_record, &packed);
		a->n_rows -= packed.n_unread;
		a->packed_bytes += packed.n_bytes;
	}
}

static int64_t bytes_of_table(const struct get_space *q, const char *name)
{
	for (size_t i = 0; i < q->n_tables; i++)
		if (strcmp(q->tables[i].name, name) == 0)
			return q->tables[i].bytes;
	return 0;
}

/* Divides the two tables of results: the packed ones by their bytes, the others by their number. */
static void divide_space(struct get_space *q)
{
	double packed = 0, rows = 0;
	double packed_table = (double)bytes_of_table(q, "packed_job"), row_table = (double)bytes_of_table(q, "result");

	for (size_t i = 0; i < q->n_accelerators; i++) {
		packed += (double)q->accelerators[i].packed_bytes;
		rows += (double)q->accelerators[i].n_rows;
	}
	for (size_t i = 0; i < q->n_accelerators; i++) {
		struct accelerator_space *a = &q->accelerators[i];

		if (packed > 0)
			a->bytes += (int64_t)((double)a->packed_bytes / packed * packed_table);
		if (rows > 0)
			a->bytes += (int64_t)((double)a->n_rows / rows * row_table);
	}
}

static int larger_table(const void *x, const void *y)
{
	const struct table_bytes *a = x, *b = y;

	return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : strcmp(a->name, b->name);
}

static int larger_accelerator(const void *x, const void *y)
{
	const struct accelerator_space *a = x, *b = y;

	return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : strcmp(a->name, b->name);
}

static int get_space_run(struct store_query *query, const struct view *d)
{
	struct get_space *q = CONTAINER_OF(query, struct get_space, q);
	int64_t last_id = db_int(d, 0, "SELECT COALESCE(MAX(id), 0) FROM job");
	int rc = db_measure(d, readers_go_on, query->store->readers, &q->tables, &q->n_tables, &query->why);

	q->file_bytes = db_file_bytes(d);
	q->free_bytes = db_free_bytes(d);
	q->can_shrink = db_can_shrink(d);
	for (int64_t id = 0; !rc && id < last_id; id += JOBS_AT_ONCE) {
		add_jobs_space(q, d, id, id + JOBS_AT_ONCE);
		if (!readers_go_on(query->store->readers))
			rc = ERR_CANCELLED;
	}
	divide_space(q);
	if (q->n_tables)
		qsort(q->tables, q->n_tables, sizeof(*q->tables), larger_table);
	if (q->n_accelerators)
		qsort(q->accelerators, q->n_accelerators, sizeof(*q->accelerators), larger_accelerator);
	return rc;
}

int store_get_space(struct store *s, struct get_space *q)
{
	CLEAR_FROM(q, file_bytes);
	q->q.run = get_space_run;
	q->q.kind = QUERY_LONG;
	return store_query(s, &q->q);
}

void get_space_release(struct get_space *q)
{
	for (size_t i = 0; i < q->n_tables; i++)
		free(q->tables[i].name);
	for (size_t i = 0; i < q->n_accelerators; i++)
		free(q->accelerators[i].name);
	FREE_ALL(q->tables, q->accelerators);
	CLEAR_FROM(q, file_bytes);
}
