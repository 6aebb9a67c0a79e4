#include "db/counters.h"

static const char *const NAMES[COUNT_DISPATCHES] = {
    [COUNT_DELIVERIES_PLANNED] = "delivery.planned",
    [COUNT_DELIVERIES_IGNORED] = "delivery.ignored",
    [COUNT_DELIVERIES_FAILED] = "delivery.failed",
    [COUNT_JOBS] = "job",
    [COUNT_RESULTS] = "result",
    [COUNT_OPEN_CHANGES] = "change.open",
};

/* The name is stored, so that the enum may be reordered. */
static const char *counter_name(int which, char *out, size_t out_bytes)
{
	if (which < COUNT_DISPATCHES)
		return NAMES[which];
	if (which < COUNT_LEASES)
		snprintf(out, out_bytes, "dispatch.%s",
		    dispatch_state_name((enum dispatch_state)(which - COUNT_DISPATCHES)));
	else if (which < COUNT_EXPERIMENTS)
		snprintf(out, out_bytes, "lease.%s", lease_state_name((enum lease_state)(which - COUNT_LEASES)));
	else
		snprintf(out, out_bytes, "experiment.%s", experiment_state_name(which - COUNT_EXPERIMENTS));
	return out;
}

void counter_add(struct txn *d, enum counter which, int64_t difference) { db_counts(d)[which] += difference; }

void counter_add_experiment(struct txn *d, const char *state)
{
	for (int i = 0; i < N_EXPERIMENT_STATES; i++)
		if (strcmp(experiment_state_name(i), state) == 0)
			counter_add(d, (enum counter)(COUNT_EXPERIMENTS + i), 1);
}

void counters_write(struct txn *d)
{
	int64_t *counts = db_counts(d);
	char name[64];

	for (int i = 0; i < N_COUNTERS; i++) {
		if (!counts[i])
			continue;
		db_exec(d,
		    "INSERT INTO counter (name, n) VALUES (?1, ?2) "
		    "ON CONFLICT (name) DO UPDATE SET n = counter.n + excluded.n",
		    V_TEXT(counter_name(i, name, sizeof(name))), V_INT(counts[i]));
		counts[i] = 0;
	}
}

void counters_read(const struct view *d, int64_t ret[N_COUNTERS])
{
	struct rows *r = db_rows(d, "SELECT name, n FROM counter");
	char name[64];

	memset(ret, 0, N_COUNTERS * sizeof(*ret));
	while (rows_next(r))
		for (int i = 0; i < N_COUNTERS; i++)
			if (strcmp(rows_text(r, 0), counter_name(i, name, sizeof(name))) == 0)
				ret[i] = rows_int(r, 1);
}
