#include "base/alloc.h"
#include "base/clock.h"
#include "ctl/server.h"
#include "ctl/table.h"

static void print_line(const struct ctl *ctl, const char *name, const char *text)
{
	printf("%s%-12s%s %s\n", ctl->has_colour ? "\033[2m" : "", name,
	    ctl->has_colour ? "\033[0m" : "", text);
}

static void print_counts(const struct ctl *ctl, const char *name, const json_t *obj)
{
	struct buf line = BUF_INIT(4096);
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)obj, key, value)
	{
		if (json_integer_value(value) <= 0)
			continue;
		buf_appendf(
		    &line, "%s%lld ", line.len ? ", " : "", (long long)json_integer_value(value));
		/* the words of the JSON, for people */
		for (const char *c = key; *c; c++)
			buf_append_char(&line, *c == '_' ? ' ' : *c);
	}
	print_line(ctl, name, line.len ? line.data : "none");
	buf_release(&line);
}

/* What is open, and the budget of each accelerator that takes experiments; nothing where none does. */
static void print_experiments(const struct ctl *ctl, const json_t *experiments)
{
	const json_t *list = json_object_get(experiments, "accelerators");
	struct buf line = BUF_INIT(64 * 1024);
	json_t *a;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	print_counts(ctl, "experiments", experiments);
	json_array_foreach(list, i, a) buf_appendf(&line, "%s%s %lld of %lld min", i ? ", " : "",
	    json_get_str(a, "name"), (long long)json_get_int(a, "seconds_24h", 0) / 60,
	    (long long)json_get_int(a, "seconds_allowed_24h", 0) / 60);
	buf_append_str(&line, " in 24 h");
	print_line(ctl, "budget", buf_str(&line));
	buf_release(&line);
}

static void print_trouble(const struct ctl *ctl, const char *text)
{
	printf("%s! %s%s\n", ctl->has_colour ? "\033[31m" : "", text,
	    ctl->has_colour ? "\033[0m" : "");
}

static const char *time_text(const json_t *v, const char *key, char *out, size_t out_bytes)
{
	const char *text = json_get_str(v, key);
	int64_t then;

	if (!text || rfc3339_parse(text, &then))
		return "never";
	return age_text(then, clock_wall_ms(), out, out_bytes);
}

/* Nothing without accelerators.git. */
static void print_registry(const struct ctl *ctl, const json_t *registry)
{
	const char *commit = json_get_str(registry, "commit");
	char line[256], since[32], fetched[32];

	if (!json_is_object(registry))
		return;
	if (commit)
		snprintf(line, sizeof(line), "%.7s, in force %s, fetched %s", commit,
		    time_text(registry, "in_force_since", since, sizeof(since)),
		    time_text(registry, "fetched_at", fetched, sizeof(fetched)));
	else
		snprintf(line, sizeof(line), "%snot loaded yet%s",
		    ctl->has_colour ? "\033[33m" : "", ctl->has_colour ? "\033[0m" : "");
	print_line(ctl, "registry", line);
}

static void print_registry_troubles(const struct ctl *ctl, const json_t *registry)
{
	const char *refused = json_get_str(registry, "refused");
	const char *why = json_get_str(registry, "refused_why");
	const char *fetch_error = json_get_str(registry, "fetch_error");
	const char *kept =
	    json_get_str(registry, "commit") ? "the commit before it" : "no commit of it";
	struct buf line = BUF_INIT(128 * 1024);

	if (refused && why) {
		buf_appendf(&line, "the registry's commit %.7s was refused, %s is in force:\n%s",
		    refused, kept, why);
		print_trouble(ctl, buf_str(&line));
		buf_clear(&line);
	}
	if (fetch_error) {
		buf_appendf(&line, "fetching the registry: %s", fetch_error);
		print_trouble(ctl, buf_str(&line));
	}
	buf_release(&line);
}

/* ---- accelerators ---- */

static const char *share_text(const json_t *v, const char *key, char *out, size_t n)
{
	const json_t *share = json_object_get(v, key);

	if (json_is_number(share))
		snprintf(out, n, "%.0f %%", 100 * json_number_value(share));
	else
		snprintf(out, n, "-");
	return out;
}

static const char *duration_text(const json_t *v, const char *key, char *out, size_t n)
{
	const json_t *value = json_object_get(v, key);
	double s = json_number_value(value);

	if (!json_is_number(value))
		snprintf(out, n, "-");
	else if (s < 60)
		snprintf(out, n, "%.0f s", s);
	else if (s < 5400)
		snprintf(out, n, "%.0f min", s / 60);
	else
		snprintf(out, n, "%.1f h", s / 3600);
	return out;
}

/* "L3", "stay (L4: pass_rate, queue_time)": what the numbers carry, and what is missing. */
static void add_proposal(struct table *t, const json_t *a)
{
	const json_t *p = json_object_get(a, "proposal");
	const char *level = json_get_str(p, "level"), *now = json_get_str(a, "level");
	bool is_down = level && now && strcmp(level, now) < 0;
	const json_t *unmet = json_object_get(p, is_down ? "unmet_now" : "unmet");
	struct buf text = BUF_INIT(1024);
	json_t *criterion;
	size_t i;

	buf_append_str(&text, level && now && strcmp(level, now) != 0 ? level : "stay");
	json_array_foreach(unmet, i, criterion)
	    buf_appendf(&text, "%s%s", i ? ", " : ": ", json_string_value(criterion));
	table_add(t, buf_str(&text));
	buf_release(&text);
}

/* "3 h ago", and what it is red by where that is no test. */
static void add_red(struct table *t, const char *since, const char *by, int64_t now_ms)
{
	int64_t then_ms;
	char age[32] = "-", text[64];

	if (since && !rfc3339_parse(since, &then_ms))
		age_text(then_ms, now_ms, age, sizeof(age));
	snprintf(
	    text, sizeof(text), "%s%s", age, by && strcmp(by, "silence") == 0 ? ", no report" : "");
	table_add(t, text);
}

static void add_accelerator(struct table *t, const json_t *a, int64_t now_ms)
{
	const json_t *numbers = json_object_get(a, "numbers");
	const char *red = json_get_str(a, "red_since");
	char text[32];

	table_add(t, json_get_str(a, "name"));
	table_add(t, json_get_str(a, "level"));
	table_add(t, share_text(numbers, "pass_rate", text, sizeof(text)));
	table_add(t, duration_text(numbers, "queue_p90", text, sizeof(text)));
	table_add(t, duration_text(numbers, "run_p90", text, sizeof(text)));
	table_add(t, share_text(numbers, "deadlines_met", text, sizeof(text)));
	add_red(t, red, json_get_str(a, "red_by"), now_ms);
	table_add(t, json_is_true(json_object_get(a, "overdue")) ? "overdue"
		     : json_get_str(a, "health")                 ? json_get_str(a, "health")
								 : "-");
	add_proposal(t, a);
}

static void print_accelerators(const struct ctl *ctl, const json_t *list)
{
	static const char *const headings[] = {"accelerator", "level", "pass rate", "queue p90",
	    "run p90", "deadlines", "red since", "health", "proposal", NULL};
	struct table *t = table_new(headings);
	int64_t now_ms = clock_wall_ms();
	json_t *a;
	size_t i;

	json_array_foreach(list, i, a) add_accelerator(t, a, now_ms);
	printf("\n");
	table_print(t, ctl, "no accelerators");
}

static void print_refused_identities(const struct ctl *ctl, const json_t *list)
{
	char line[512];
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const char *repository = json_get_str(row, "repository");

		snprintf(line, sizeof(line),
		    "the last token of %s was refused, because it is of another repository: "
		    "outpostctl identities",
		    repository ? repository : "");
		print_trouble(ctl, line);
	}
}

static void print_troubles(const struct ctl *ctl, const json_t *v)
{
	const char *refused = json_string_value(json_at(v, "config", "refused", NULL));
	const char *comments = json_string_value(json_at(v, "comments", "last_error", NULL));
	int64_t n_failed = json_integer_value(json_at(v, "deliveries", "failed", NULL));
	int64_t n_dead = json_integer_value(json_at(v, "outbox", "dead", NULL));
	struct buf line = BUF_INIT(8192);

	if (refused) {
		buf_appendf(&line,
		    "the last reload was refused, the configuration before it is in force:\n%s",
		    refused);
		print_trouble(ctl, buf_str(&line));
		buf_clear(&line);
	}
	if (!json_is_true(json_at(v, "store", "writable", NULL)))
		print_trouble(ctl, "the database cannot be written: webhooks are answered 503");
	if (n_failed) {
		buf_appendf(&line,
		    "%lld deliveries could not be planned: outpostctl deliveries --failed",
		    (long long)n_failed);
		print_trouble(ctl, buf_str(&line));
		buf_clear(&line);
	}
	if (n_dead) {
		buf_appendf(
		    &line, "%lld effects were given up: outpostctl dispatches", (long long)n_dead);
		print_trouble(ctl, buf_str(&line));
		buf_clear(&line);
	}
	if (comments) {
		buf_appendf(&line, "writing comments: %s", comments);
		print_trouble(ctl, buf_str(&line));
	}
	print_registry_troubles(ctl, json_object_get(v, "registry"));
	print_refused_identities(ctl, json_object_get(v, "refused_identities"));
	buf_release(&line);
}

static void print_status(const struct ctl *ctl, const json_t *v)
{
	int64_t now = clock_wall_ms(), started, looked;
	const char *look = json_get_str(v, "last_reconcile"),
		   *start = json_get_str(v, "started_at");
	char line[256], age[32] = "never";

	if (start && !rfc3339_parse(start, &started))
		snprintf(line, sizeof(line), "outpostd %s on %s, started %s",
		    json_get_str(v, "version"), json_get_str(v, "address"),
		    age_text(started, now, age, sizeof(age)));
	else
		snprintf(line, sizeof(line), "outpostd");
	print_line(ctl, "service", line);
	snprintf(line, sizeof(line), "%s; accelerators: %lld, open changes: %lld",
	    json_get_str(v, "upstream") ? json_get_str(v, "upstream") : "",
	    (long long)json_get_int(v, "accelerators", 0),
	    (long long)json_get_int(v, "open_changes", 0));
	print_line(ctl, "upstream", line);
	print_counts(ctl, "deliveries", json_object_get(v, "deliveries"));
	print_counts(ctl, "dispatches", json_object_get(v, "dispatches"));
	print_counts(ctl, "outbox", json_object_get(v, "outbox"));
	snprintf(line, sizeof(line), "%lld jobs, %lld results, %.1f MiB",
	    (long long)json_get_int(v, "jobs", 0), (long long)json_get_int(v, "results", 0),
	    (double)json_integer_value(json_at(v, "store", "bytes", NULL)) / 1048576.0);
	print_line(ctl, "database", line);
	print_counts(ctl, "pull", json_object_get(v, "pull"));
	print_counts(ctl, "machines", json_object_get(v, "machines"));
	print_experiments(ctl, json_object_get(v, "experiments"));
	print_counts(ctl, "github", json_object_get(v, "github"));
	print_counts(ctl, "comments", json_object_get(v, "comments"));
	print_line(ctl, "reconciled",
	    look && !rfc3339_parse(look, &looked) ? age_text(looked, now, age, sizeof(age))
						  : "not yet");
	print_registry(ctl, json_object_get(v, "registry"));
	print_troubles(ctl, v);
	print_accelerators(ctl, json_object_get(v, "accelerator_list"));
}

int cmd_status(const struct ctl *ctl, int argc, char **argv)
{
	json_t *v;

	if (argc > 0)
		return command_wrong("status", "what is '%s'?", argv[0]);
	if (server_ask(ctl, "GET", "/control/status", NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	print_status(ctl, v);
	json_decref(v);
	return EXIT_DONE;
}
