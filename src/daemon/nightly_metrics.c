#include "daemon/nightly_metrics.h"

#include "base/alloc.h"

struct sample {
	const char *label;
	int64_t value;
};

static void put_family(struct buf *out, const char *name, const char *help, const char *label,
    const struct sample *list, size_t n)
{
	buf_appendf(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
	for (size_t i = 0; i < n; i++)
		buf_appendf(out, "%s{%s=\"%s\"} %lld\n", name, label, list[i].label,
		    (long long)list[i].value);
}

void nightly_metrics_write(struct buf *out, const struct dispatch_counters *c)
{
	const struct sample runs[] = {
	    {"dispatched", c->n_nightlies_dispatched},
	    {"skipped", c->n_nightlies_skipped},
	    {"failed", c->n_nightlies_failed},
	};
	const struct sample heads[] = {
	    {"upstream", c->n_upstream_heads_asked},
	    {"source", c->n_source_heads_asked},
	};
	const struct sample answers[] = {
	    {"unchanged", c->n_upstream_heads_unchanged},
	    {"failed", c->n_head_failures},
	};

	put_family(out, "outpost_schedule_runs_total", "Periodic runs by what became of them.",
	    "state", runs, ARRAY_LEN(runs));
	put_family(out, "outpost_schedule_head_requests_total",
	    "Heads that were asked for, of upstream's branch and of vendors' sources.", "of", heads,
	    ARRAY_LEN(heads));
	put_family(out, "outpost_schedule_head_answers_total",
	    "Of these, upstream's that were unchanged (304), and those that failed.", "answer",
	    answers, ARRAY_LEN(answers));
}
