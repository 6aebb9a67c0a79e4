/* outpostctl store copy: moves an installation from SQLite to PostgreSQL, or back, while no daemon uses either database. */
#include "config/config.h"
#include "ctl/command.h"
#include "db/copy.h"
#include "db/schema.h"
#include "db/settings.h"
#include "db/store.h"
#include "logs/copy_logs.h"

enum { PASSWORD_MAX_BYTES = 4096 };

/* One of the two databases. */
struct copy_side {
	char *path;      /* the file, or the URL */
	char *state_dir; /* the file's folder, which has the logs, too; NULL: a server's */
	struct secret *password;
	int lock_fd;
	struct db *db;
};

struct copying {
	const struct ctl *ctl;
	struct copy_side from, to;
	struct db_copy copy;
	struct logs_copy logs;
	int64_t shown_ms;
	bool has_line; /* progress that the next line replaces */
	json_t *tables;
};

/* ---- what people see ---- */

static const char *colour(const struct copying *c, const char *sequence) { return c->ctl->has_colour ? sequence : ""; }

static void clear_line(struct copying *c)
{
	if (c->has_line)
		fputs("\r\033[K", stdout);
	c->has_line = false;
}

/* A bar on a terminal; a file or a pipe gets only the finished tables. */
static void show_progress(struct copying *c, const char *what, const char *name, int64_t n, int64_t total)
{
	enum { BAR = 20, EVERY_MS = 100 };
	int64_t now_ms = clock_mono_ms();
	int filled = total > 0 ? (int)(n < total ? n * BAR / total : BAR) : BAR;

	if (!c->ctl->is_terminal || c->ctl->is_json || now_ms - c->shown_ms < EVERY_MS)
		return;
	c->shown_ms = now_ms;
	printf("\r\033[K%-18.18s %s%.*s%s%.*s%s %s %" PRId64 " of %" PRId64, name, colour(c, "\033[36m"), filled,
	    "####################", colour(c, "\033[2m"), BAR - filled, "....................", colour(c, "\033[0m"),
	    what, n, total);
	fflush(stdout);
	c->has_line = true;
}

static void show_done(struct copying *c, const char *name, int64_t n, const char *unit, const char *digest)
{
	clear_line(c);
	json_array_append_new(
	    c->tables, json_pack("{s:s, s:I, s:s}", "name", name, unit, (json_int_t)n, "digest", digest));
	if (!c->ctl->is_json)
		printf("%-18s %12" PRId64 " %-5s %s%s%s %sequal%s\n", name, n, unit, colour(c, "\033[2m"), digest,
		    colour(c, "\033[0m"), colour(c, "\033[32m"), colour(c, "\033[0m"));
	fflush(stdout);
}

static void on_table_step(const struct copy_step *step, void *owner)
{
	struct copying *c = owner;
	char digest[COPY_DIGEST_CHARS + 1];

	if (step->what == COPY_IS_EQUAL) {
		show_done(c, step->table, step->n, "rows", copy_digest_text(&step->digest, digest));
	} else if (step->what == COPY_AGAIN) {
		clear_line(c);
		fprintf(
		    stderr, "outpostctl: table %s has changed since the copy began: it is copied again\n", step->table);
	} else {
		show_progress(c, step->what == COPY_WRITES ? "copied" : "compared", step->table, step->n, step->total);
	}
}

static void on_log_step(int64_t n, int64_t total, void *owner) { show_progress(owner, "copied", "logs", n, total); }

static void show_end(const struct copying *c)
{
	const char *slash = strrchr(c->to.path, '/'), *name = slash ? slash + 1 : c->to.path;

	printf("%s%" PRId64 " tables, %" PRId64 " rows and %" PRId64 " logs are equal in both.%s\n",
	    colour(c, "\033[32m"), c->copy.n_tables, c->copy.n_rows, c->logs.n, colour(c, "\033[0m"));
	if (!c->to.state_dir)
		printf("Now set `store: %s` and `store_password_file` in %s and start outpostd.\n", c->to.path,
		    c->ctl->config_path);
	else
		printf("Now set `store: sqlite` and `state_dir: %s` in %s, without `store_password_file` and `logs: "
		       "database`%s, and start outpostd.\n",
		    c->to.state_dir, c->ctl->config_path,
		    str_eq(name, "outpost.db") ? "" : ", rename the file to outpost.db");
}

static int explain(struct copying *c, const struct error *e)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);

	clear_line(c);
	escape_line(&line, e->text, 0);
	fprintf(stderr, "outpostctl: %s\n", buf_str(&line));
	buf_release(&line);
	return EXIT_FAILED;
}

/* ---- the two databases ---- */

static int side_open(struct copy_side *s, struct error *e)
{
	int64_t ended_epoch;
	int rc = 0;

	if (s->state_dir) {
		rc = store_lock_folder(s->state_dir, &s->lock_fd, &ended_epoch, e);
		if (!rc)
			rc = schema_examine(s->path, e);
	}
	if (!rc)
		rc = db_open_with_password(s->path, s->password, DB_WRITER, &s->db, e);
	if (!rc && !s->state_dir)
		rc = db_lock(s->db, false, e);
	return rc;
}

static void side_release(struct copy_side *s)
{
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	secret_unref(s->password);
	FREE_ALL(s->path, s->state_dir);
}

static int describe_sides(struct copying *c, const char *to, const char *password_file, struct error *e)
{
	char *state_dir = NULL;
	int rc = config_state_dir(c->ctl->config_path, &state_dir, e);

	c->from.lock_fd = c->to.lock_fd = -1;
	if (!rc)
		rc = config_store(c->ctl->config_path, &c->from.path, &c->from.password, e);
	if (!rc && !c->from.path) {
		c->from.path = path_join(state_dir, "outpost.db");
		c->from.state_dir = xstrdup(state_dir);
	}
	free(state_dir);
	if (rc)
		return rc;
	if (store_has_password(to))
		return error_set(e, ERR_INVALID, "--to must have no password: put it into the file of --password-file");
	if (!db_is_server(to) && strstr(to, "://"))
		return error_set(e, ERR_INVALID, "--to must be postgresql://… or a file, not %s", to);
	c->to.path = xstrdup(to);
	if (!db_is_server(to))
		c->to.state_dir = path_folder(to);
	if (!c->from.state_dir == !c->to.state_dir)
		return error_set(e, ERR_INVALID, "%s",
		    c->from.state_dir ? "the database is a file already: use outpostctl backup for a copy of it"
				      : "the database is a server's already: use pg_dump for a copy of it");
	if (c->from.state_dir && access(c->from.path, F_OK))
		return error_set(e, ERR_NOT_FOUND, "%s: %m", c->from.path);
	return password_file ? secret_read("", password_file, SECRET_TEXT, PASSWORD_MAX_BYTES, &c->to.password, e) : 0;
}

/* ---- the copy ---- */

/* With SQLite the file has the key that signs callback tokens, with PostgreSQL the setting. The tokens that vendors have stay valid. */
static int copy_callback_key(struct copying *c, struct error *e)
{
	char *path = path_join(c->from.state_dir ? c->from.state_dir : c->to.state_dir, CALLBACK_KEY);
	char hex[2 * CALLBACK_KEY_BYTES + 1] = "", *setting = NULL;
	uint8_t bytes[CALLBACK_KEY_BYTES] = {0};
	struct secret *key = NULL;
	int rc = 0;

	if (!c->from.state_dir) {
		setting = setting_text(db_view(c->from.db), CALLBACK_KEY);
		if (setting && hex_decode(setting, strlen(setting), bytes, sizeof(bytes)))
			rc = error_set(e, ERR_CORRUPT, "the setting " CALLBACK_KEY " of the database is not a key");
		else if (setting)
			rc = file_write_atomic(path, bytes, sizeof(bytes), 0600, e);
	} else if (access(path, F_OK) == 0) { /* else no daemon has run */
		rc = secret_read("", path, SECRET_BYTES, CALLBACK_KEY_BYTES, &key, e);
		if (!rc && secret_bytes(key) != CALLBACK_KEY_BYTES)
			rc = error_set(e, ERR_CORRUPT, "%s: not a key of %d bytes", path, CALLBACK_KEY_BYTES);
		if (!rc) {
			hex_encode(secret_text(key), CALLBACK_KEY_BYTES, hex);
			setting_put_text(db_txn(c->to.db), CALLBACK_KEY, hex);
			rc = db_status(c->to.db);
			if (rc)
				error_set(e, rc, "%s", db_why(c->to.db)->text);
		}
	}
	if (setting)
		explicit_bzero(setting, strlen(setting));
	explicit_bzero(hex, sizeof(hex));
	explicit_bzero(bytes, sizeof(bytes));
	secret_unref(key);
	FREE_ALL(setting, path);
	return rc;
}

static int copy_all(struct copying *c, struct error *e)
{
	char digest[COPY_DIGEST_CHARS + 1];
	int rc = side_open(&c->from, e);

	if (!rc)
		rc = side_open(&c->to, e);
	c->copy = (struct db_copy){.from = c->from.db, .to = c->to.db, .on_step = on_table_step, .owner = c};
	if (!rc)
		rc = db_copy_begin(&c->copy, e);
	if (rc)
		return rc;
	if (c->copy.goes_on && !c->ctl->is_json)
		printf("An earlier copy was interrupted: it goes on.\n");
	rc = db_copy_tables(&c->copy, e);
	c->logs = (struct logs_copy){.state_dir = c->from.state_dir ? c->from.state_dir : c->to.state_dir,
	    .db = c->from.state_dir ? c->to.db : c->from.db,
	    .on_step = on_log_step,
	    .owner = c};
	if (!rc)
		rc = c->from.state_dir ? logs_copy_to_database(&c->logs, e) : logs_copy_to_folder(&c->logs, e);
	if (!rc)
		show_done(c, "logs", c->logs.n, "logs", copy_digest_text(&c->logs.digest, digest));
	if (!rc)
		rc = copy_callback_key(c, e);
	return rc ? rc : db_copy_end(&c->copy, e);
}

int cmd_store_copy(const struct ctl *ctl)
{
	const char *to = NULL, *password_file = NULL;
	const struct argument_option options[] = {
	    {.name = "--to", .text = &to}, {.name = "--password-file", .text = &password_file}, {NULL}};
	struct copying c = {.ctl = ctl};
	struct error why = {0};
	int rc;

	if (!arguments_read(ctl, options, NULL, 0, 0))
		return EXIT_USAGE;
	if (!to)
		return command_wrong(ctl, "--to is missing");
	c.tables = json_array();
	rc = describe_sides(&c, to, password_file, &why);
	if (!rc)
		rc = copy_all(&c, &why);
	db_close(c.from.db);
	db_close(c.to.db);
	db_copy_release(&c.copy);
	if (rc) {
		explain(&c, &why);
	} else if (ctl->is_json) {
		json_dumpf(c.tables, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		show_end(&c);
	}
	json_decref(c.tables);
	side_release(&c.from);
	side_release(&c.to);
	return rc ? EXIT_FAILED : EXIT_DONE;
}
