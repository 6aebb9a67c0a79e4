#include "daemon/runner_status.h"

#include "base/alloc.h"
#include "daemon/wire.h"

void runner_status_add(json_t *status, const struct daemon *d)
{
	const struct runners_counters *c = runners_counters(d->runners);
	struct runners_gauges g;
	json_t *v = json_object();

	runners_read_gauges(d->runners, &g);
	json_set_int(v, "lately", g.n_machines);
	json_set_int(v, "claims_waiting", g.n_claims_waiting);
	json_set_int(v, "heartbeats_waiting", g.n_heartbeats_waiting);
	json_set_int(v, "leases_granted", c->n_leases_granted);
	json_set_int(v, "leases_returned", c->n_leases_returned);
	json_set_int(v, "leases_expired", c->n_leases_expired);
	json_set_int(v, "wrong_tokens", g.n_wrong_tokens);
	json_object_set_new(status, "machines", v);
}

static void write_metrics(
    struct buf *out, const struct runners_counters *c, const struct runners_gauges *g)
{
	const struct {
		const char *name, *type, *help;
		int64_t value;
	} lines[] = {
	    {"outpost_machines", "gauge", "Machines that were heard of in the last two minutes.",
		g->n_machines},
	    {"outpost_claims_waiting", "gauge", "Requests for work that are held open.",
		g->n_claims_waiting},
	    {"outpost_heartbeats_waiting", "gauge", "Heartbeats that are held open.",
		g->n_heartbeats_waiting},
	    {"outpost_leases_granted_total", "counter", "Jobs that machines took.",
		c->n_leases_granted},
	    {"outpost_leases_returned_total", "counter", "Jobs that machines handed back.",
		c->n_leases_returned},
	    {"outpost_leases_expired_total", "counter", "Leases that ran out.",
		c->n_leases_expired},
	    {"outpost_wrong_tokens_total", "counter", "Vendors' tokens that were not valid.",
		g->n_wrong_tokens},
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n%s %lld\n", lines[i].name,
		    lines[i].help, lines[i].name, lines[i].type, lines[i].name,
		    (long long)lines[i].value);
}

void runner_status_write_metrics(struct buf *out, const struct daemon *d)
{
	struct runners_gauges g;

	runners_read_gauges(d->runners, &g);
	write_metrics(out, runners_counters(d->runners), &g);
}
