/* outpostctl status and backup: the service as a whole. */

#include "ctl/server.h"

static void PRINTF(3, 4) print_line(const struct ctl *ctl, const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("%s%-12s%s ", ctl->has_colour ? "\033[2m" : "", name, ctl->has_colour ? "\033[0m" : "");
	vprintf(fmt, ap);
	puts("");
	va_end(ap);
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
		buf_appendf(&line, "%s%lld ", line.len ? ", " : "", (long long)json_integer_value(value));
		for (const char *c = key; *c; c++)
			buf_append_char(&line, *c == '_' ? ' ' : *c);
	}
	print_line(ctl, name, "%s", line.len ? line.data : "none");
	buf_release(&line);
}

/* Open experiments, and the budget of each accelerator that runs them. */
static void print_experiments(const struct ctl *ctl, const json_t *experiments)
{
	const json_t *list = json_object_get(experiments, "accelerators");
	json_t *a;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	print_counts(ctl, "experiments", experiments);
	json_array_foreach(list, i, a)
	{
		print_line(ctl, "budget", "%.100s: %lld of %lld min in 24 h", json_get_str(a, "name"),
		    (long long)json_get_int(a, "seconds_24h", 0) / 60,
		    (long long)json_get_int(a, "seconds_allowed_24h", 0) / 60);
	}
}

enum { TROUBLE_MAX_BYTES = 64 << 10, TROUBLE_CHARS = 4000 };

/* The text contains errors of GitHub and of the database, so each of its lines is escaped. */
static void PRINTF(2, 3) print_trouble(const struct ctl *ctl, const char *fmt, ...)
{
	struct buf line = BUF_INIT(TROUBLE_MAX_BYTES);
	char text[TROUBLE_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fputs(ctl->has_colour ? "\033[31m! " : "! ", stdout);
	for (char *rest = text, *s = strsep(&rest, "\n"); s; s = strsep(&rest, "\n")) {
		escape_line(&line, s, TROUBLE_CHARS);
		printf("%s%s", buf_str(&line), rest ? "\n" : "");
		buf_clear(&line);
	}
	puts(ctl->has_colour ? "\033[0m" : "");
	buf_release(&line);
}

static void add_node_row(struct table *t, const json_t *node)
{
	struct buf seats = BUF_INIT(4096);
	json_t *seat;
	size_t i;

	json_array_foreach(json_object_get(node, "seats"), i, seat)
	    buf_appendf(&seats, "%s%.60s", i ? ", " : "", json_string_value(seat));
	table_add(t, json_get_str(node, "name"));
	table_add(t, json_get_str(node, "version"));
	table_add_age(t, node, "seen_at");
	table_add(t, seats.len ? buf_str(&seats) : "-");
	buf_release(&seats);
}

/* Whether other daemons may share the database: then each daemon is listed, also one that is left alone. With SQLite the only one has each
 * seat. */
static bool is_shared(const json_t *v)
{
	return str_eq(json_string_value(json_at(v, "store", "engine", NULL)), "postgresql");
}

/* The name of the daemon that has this seat; NULL: none. */
static const char *holder_of(const json_t *v, const char *seat)
{
	json_t *node, *one;
	size_t i, k;

	json_array_foreach(json_object_get(v, "nodes"), i, node)
	{
		json_array_foreach(json_object_get(node, "seats"), k, one)
		{
			if (str_eq(json_string_value(one), seat))
				return json_get_str(node, "name");
		}
	}
	return NULL;
}

/* A daemon knows only its own reconciliations. */
static void print_reconciled(const struct ctl *ctl, const json_t *v)
{
	const char *holder = is_shared(v) ? holder_of(v, "reconciler") : NULL;

	if (holder && !str_eq(holder, json_get_str(v, "node")))
		print_line(ctl, "reconciled", "by %.100s, which has the seat", holder);
	else
		print_line(ctl, "reconciled", "%s", AGE(v, "last_reconcile", "not yet"));
}

static void print_free_seats(const struct ctl *ctl, const json_t *v)
{
	struct buf seats = BUF_INIT(1024);
	json_t *seat;
	size_t i;

	json_array_foreach(json_object_get(v, "free_seats"), i, seat)
	    buf_appendf(&seats, "%s%.60s", i ? ", " : "", json_string_value(seat));
	if (seats.len)
		print_trouble(ctl,
		    "no daemon has the seats %s: their work waits. Seats move within 16 s of a daemon's end. If these"
		    " do not, look for store_commit_failed in the log of each daemon",
		    buf_str(&seats));
	buf_release(&seats);
}

/* The daemons that share the database. */
static void print_nodes(const struct ctl *ctl, const json_t *v)
{
	static const struct server_list nodes = {"nodes", {"node", "version", "seen", "seats"}, add_node_row, ""};

	if (!is_shared(v))
		return;
	server_print_rows(ctl, v, &nodes);
	printf("\n");
}

/* ---- the space of the database ---- */

enum { TABLES_SHOWN = 8, SHOWN_BYTES = 1 << 20 };

static double mib(int64_t bytes) { return (double)bytes / 1048576.0; }

static void add_mib(struct table *t, int64_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f MiB", mib(bytes));
	table_add(t, text);
}

static void add_space_row(struct table *t, const json_t *row)
{
	int64_t n = json_get_int(row, "results", 0), bytes = json_get_int(row, "bytes", 0);
	char text[32] = "-";

	table_add(t, json_get_str(row, "name"));
	table_add_int(t, json_get_int(row, "jobs", 0));
	table_add_int(t, n);
	add_mib(t, bytes);
	if (n > 0)
		snprintf(text, sizeof(text), "%.1f", (double)bytes / (double)n);
	table_add(t, text);
}

/* The largest tables, if they have at least a mebibyte, and the others as one. */
static void print_space(const struct ctl *ctl, const json_t *space)
{
	static const char *const headings[] = {"table", "size", NULL};
	static const struct server_list accelerators = {"accelerators",
	    {"accelerator", "jobs", "results", "size of results", "bytes each"}, add_space_row, "no results"};
	struct table *t;
	int64_t rest = 0;
	size_t i, n_shown = 0;
	json_t *row;

	if (!json_is_object(space)) {
		printf("\nThe space by table is being measured; ask again in a minute.\n");
		return;
	}
	printf("\n");
	t = table_new(headings);
	json_array_foreach(json_object_get(space, "tables"), i, row)
	{
		int64_t bytes = json_get_int(row, "bytes", 0);

		if (i >= TABLES_SHOWN || bytes < SHOWN_BYTES) {
			rest += bytes;
			continue;
		}
		n_shown++;
		table_add(t, json_get_str(row, "name"));
		add_mib(t, bytes);
	}
	table_add(t, n_shown ? "others" : "all tables");
	add_mib(t, rest);
	table_print(t, ctl, "");
	printf("\n");
	server_print_rows(ctl, space, &accelerators);
	printf("\nmeasured %s", AGE(space, "measured_at", ""));
	if (json_is_integer(json_object_get(space, "free")))
		printf("; %.1f MiB of the file are free, and filled again; %s", mib(json_get_int(space, "free", 0)),
		    json_is_true(json_object_get(space, "shrinks"))
			? "more than an eighth is given back to the disk"
			: "the file never shrinks, because an older version created it (see \"Space\" in "
			  "operators.md)");
	printf("\n");
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

static void add_accelerator_row(struct table *t, const json_t *a)
{
	const json_t *numbers = json_object_get(a, "numbers");
	const char *by = json_get_str(a, "red_by");
	char text[64];
	/* The level that the numbers support, and the criteria that are not met: "L3", or "stay: pass_rate,
	 * queue_time". */
	const json_t *p = json_object_get(a, "proposal");
	const char *level = json_get_str(p, "level"), *now = json_get_str(a, "level");
	bool is_down = level && now && strcmp(level, now) < 0;
	const json_t *unmet = json_object_get(p, is_down ? "unmet_now" : "unmet");
	struct buf proposal = BUF_INIT(1024);
	json_t *criterion;
	size_t i;

	table_add(t, json_get_str(a, "name"));
	table_add(t, now);
	table_add(t, share_text(numbers, "pass_rate", text, sizeof(text)));
	table_add(t, duration_text(numbers, "queue_p90", text, sizeof(text)));
	table_add(t, duration_text(numbers, "run_p90", text, sizeof(text)));
	table_add(t, share_text(numbers, "deadlines_met", text, sizeof(text)));
	/* "3 h ago", with ", no report" where missing reports made it red */
	snprintf(text, sizeof(text), "%s%s", AGE(a, "red_since", "-"),
	    by && strcmp(by, "silence") == 0 ? ", no report" : "");
	table_add(t, text);
	table_add(t, json_is_true(json_object_get(a, "overdue")) ? "overdue"
		     : json_get_str(a, "health")                 ? json_get_str(a, "health")
								 : "-");
	buf_append_str(&proposal, level && now && strcmp(level, now) != 0 ? level : "stay");
	json_array_foreach(unmet, i, criterion)
	    buf_appendf(&proposal, "%s%s", i ? ", " : ": ", json_string_value(criterion));
	table_add(t, buf_str(&proposal));
	buf_release(&proposal);
}

static void print_troubles(const struct ctl *ctl, const json_t *v)
{
	const char *refused = json_string_value(json_at(v, "config", "refused", NULL));
	const char *comments = json_string_value(json_at(v, "comments", "last_error", NULL));
	const char *not_writable = json_string_value(json_at(v, "store", "why_not_writable", NULL));
	const char *error = json_string_value(json_at(v, "store", "error", NULL));
	const char *github = json_string_value(json_at(v, "github", "trouble", NULL));
	int64_t n_failed = json_integer_value(json_at(v, "deliveries", "failed", NULL));
	int64_t n_dead = json_integer_value(json_at(v, "outbox", "dead", NULL));
	const json_t *registry = json_object_get(v, "registry");
	const char *commit = json_get_str(registry, "refused");
	const char *why = json_get_str(registry, "refused_why");
	const char *fetch_error = json_get_str(registry, "fetch_error");
	json_t *row;
	size_t i;

	if (refused)
		print_trouble(
		    ctl, "the last reload was refused, the configuration before it is in force:\n%s", refused);
	if (not_writable)
		print_trouble(ctl, "the database cannot be written, and webhooks get 503: %s%s%s", not_writable,
		    error ? "\n" : "", error ? error : "");
	print_free_seats(ctl, v);
	if (github)
		print_trouble(
		    ctl, "GitHub fails, last %s: %s", AGE(json_object_get(v, "github"), "trouble_at", ""), github);
	if (n_failed)
		print_trouble(
		    ctl, "%lld deliveries could not be planned: outpostctl deliveries --failed", (long long)n_failed);
	if (n_dead)
		print_trouble(ctl, "%lld effects were given up: outpostctl dispatches", (long long)n_dead);
	if (comments)
		print_trouble(ctl, "writing comments: %s", comments);
	if (commit && why)
		print_trouble(ctl, "the registry's commit %.7s was refused, %s is in force:\n%s", commit,
		    json_get_str(registry, "commit") ? "the commit before it" : "no commit of it", why);
	if (fetch_error)
		print_trouble(ctl, "fetching the registry: %s", fetch_error);
	json_array_foreach(json_object_get(v, "refused_identities"), i, row)
	{
		const char *repository = json_get_str(row, "repository");

		print_trouble(ctl,
		    "the last token of %s was refused, because it belongs to another repository: outpostctl identities",
		    repository ? repository : "");
	}
}

int cmd_status(const struct ctl *ctl)
{
	static const struct server_list accelerators = {"accelerator_list",
	    {"accelerator", "level", "pass rate", "queue p90", "run p90", "deadlines", "red since", "health",
		"proposal"},
	    add_accelerator_row, "no accelerators"};
	json_t *v;

	int exit_code = server_show(ctl, "GET", "/control/status", NULL, &v);
	if (v) {
		const json_t *registry = json_object_get(v, "registry");
		const char *commit = json_get_str(registry, "commit");

		if (json_get_str(v, "started_at"))
			print_line(ctl, "service", "outpostd %s on %s, started %s", json_get_str(v, "version"),
			    json_get_str(v, "address"), AGE(v, "started_at", ""));
		else
			print_line(ctl, "service", "outpostd");
		print_line(ctl, "upstream", "%s; accelerators: %lld, open changes: %lld",
		    json_get_str(v, "upstream") ? json_get_str(v, "upstream") : "",
		    (long long)json_get_int(v, "accelerators", 0), (long long)json_get_int(v, "open_changes", 0));
		print_counts(ctl, "deliveries", json_object_get(v, "deliveries"));
		print_counts(ctl, "dispatches", json_object_get(v, "dispatches"));
		print_counts(ctl, "outbox", json_object_get(v, "outbox"));
		print_line(ctl, "database", "%lld jobs, %lld results, %.1f MiB", (long long)json_get_int(v, "jobs", 0),
		    (long long)json_get_int(v, "results", 0),
		    (double)json_integer_value(json_at(v, "store", "bytes", NULL)) / 1048576.0);
		print_counts(ctl, "pull", json_object_get(v, "pull"));
		print_counts(ctl, "machines", json_object_get(v, "machines"));
		print_experiments(ctl, json_object_get(v, "experiments"));
		print_counts(ctl, "github", json_object_get(v, "github"));
		print_counts(ctl, "comments", json_object_get(v, "comments"));
		print_reconciled(ctl, v);
		if (commit)
			print_line(ctl, "registry", "%.7s, in force %s, fetched %s", commit,
			    AGE(registry, "in_force_since", "never"), AGE(registry, "fetched_at", "never"));
		else if (json_is_object(registry)) /* there is none without accelerators.git */
			print_line(ctl, "registry", "%snot loaded yet%s", ctl->has_colour ? "\033[33m" : "",
			    ctl->has_colour ? "\033[0m" : "");
		print_troubles(ctl, v);
		printf("\n");
		print_nodes(ctl, v);
		server_print_rows(ctl, v, &accelerators);
		print_space(ctl, json_object_get(v, "space"));
	}
	json_decref(v);
	return exit_code;
}

int cmd_backup(const struct ctl *ctl)
{
	json_t *v = NULL;
	int exit_code = EXIT_FAILED;

	char *here = getcwd(NULL, 0);
	char *path = path_join(here ? here : "/", ctl->words[0]);
	json_t *body = json_pack("{s:s}", "path", path);
	if (body)
		exit_code = server_show(ctl, "POST", "/control/backup", body, &v);
	else
		fprintf(stderr, "outpostctl: the path is not UTF-8\n");
	if (v)
		printf("%s: %.1f MiB\n", path, (double)json_get_int(v, "bytes", 0) / 1048576.0);
	json_decref(v);
	FREE_ALL(path, here);
	return exit_code;
}
