/* The cost of dropping the oldest results of a database, in the pieces of the store (store/maintenance.c), and of shortening the
 * file afterwards. Prints one line of JSON for each. Each piece is a transaction with its commit.
 *
 *   retention FILE RESULTS */

#include <time.h>

#include "db/counters.h"
#include "db/schema.h"
#include "store/maintenance.h"

static struct db *db;

static void check(void)
{
	if (!db_status(db))
		return;
	fprintf(stderr, "retention: %s\n", db_why(db)->text);
	exit(1);
}

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct cost {
	int64_t n_pieces;
	double wall_ms, cpu_ms, longest_ms, longest_cpu_ms;
};

/* Does pieces until nothing is left, or one piece if there is no change to drop. Returns whether there was one. */
static bool do_piece(const struct apply_retention *o, struct cost *c)
{
	double wall = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	bool has_more;
	int64_t left;

	if (db_begin(db, DB_WRITER))
		check();
	has_more = retention_piece(db_txn(db), o);
	counters_write(db_txn(db));
	if (db_status(db) || db_commit(db))
		check();
	wall = now_ms(CLOCK_MONOTONIC) - wall;
	cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	c->n_pieces++;
	c->wall_ms += wall;
	c->cpu_ms += cpu;
	c->longest_ms = wall > c->longest_ms ? wall : c->longest_ms;
	c->longest_cpu_ms = cpu > c->longest_cpu_ms ? cpu : c->longest_cpu_ms;
	if (db_wal_bytes(db) > 4 << 20 && db_checkpoint(db, CHECKPOINT_PASSIVE, &left))
		check();
	return has_more;
}

/* The first commit creates the write-ahead log, which takes two more syncs. The daemon's first commit is that of its start. */
static void create_log(void)
{
	if (db_begin(db, DB_WRITER))
		check();
	db_exec(db_txn(db), "UPDATE counter SET n = n WHERE name = 'result'");
	if (db_status(db) || db_commit(db))
		check();
}

static int64_t count_results(void) { return db_int(db, 0, "SELECT n FROM counter WHERE name = 'result'"); }

static void print_cost(const char *what, int64_t n, const struct cost *c)
{
	printf("{\"what\":\"%s\",\"n\":%lld,\"pieces\":%lld,\"wall_ms\":%.1f,\"cpu_ms\":%.1f,\"longest_ms\":%.1f,"
	       "\"longest_cpu_ms\":%.1f,\"bytes\":%lld}\n",
	    what, (long long)n, (long long)c->n_pieces, c->wall_ms, c->cpu_ms, c->longest_ms, c->longest_cpu_ms,
	    (long long)db_file_bytes(db_view(db)));
}

int main(int argc, char **argv)
{
	struct apply_retention o = {.results_before_ms = 0};
	struct cost drop = {0}, shrink = {0};
	struct error e = {0};
	int64_t n_wanted, before;

	log_setup(LOG_ERROR, LOG_TEXT);
	if (argc != 3 || parse_int64(argv[2], &n_wanted))
		return fprintf(stderr, "usage: retention FILE RESULTS\n"), 2;
	if (db_open(argv[1], DB_WRITER, &db, &e) || schema_apply(db, argv[1], &e))
		return fprintf(stderr, "retention: %s\n", e.text), 1;
	o.results_before_ms = db_int(db, 0,
	    "SELECT COALESCE(MIN(active_ms), 0) + 1 FROM (SELECT c.active_ms, SUM(SUM(j.n_tests)) OVER (ORDER BY "
	    "c.active_ms)"
	    " AS n FROM change c JOIN job j ON j.change_id = c.id GROUP BY c.id) WHERE n >= ?1",
	    V_INT(n_wanted));
	check();
	create_log();
	before = count_results();
	while (do_piece(&o, &drop) &&
	       db_int(db, 0, "SELECT 1 FROM change WHERE active_ms < ?1 LIMIT 1", V_INT(o.results_before_ms)))
		;
	print_cost("drop", before - count_results(), &drop);
	before = db_file_bytes(db_view(db));
	while (do_piece(&o, &shrink))
		;
	print_cost("shrink", before - db_file_bytes(db_view(db)), &shrink);
	db_close(db);
	return 0;
}
