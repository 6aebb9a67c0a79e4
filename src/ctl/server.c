#include "ctl/server.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "config/config.h"
#include "http/client.h"

enum { BACKUP_TIMEOUT_MS = 3600 * 1000, GAP = 2, NARROWEST = 8 };

/* ---- tables ---- */

struct table {
	const char *const *headings;
	size_t n_columns, n_cells;
	char **cells;
};

struct table *table_new(const char *const *headings)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->headings = headings;
	while (headings[t->n_columns] && t->n_columns < LIST_COLUMNS_MAX)
		t->n_columns++;
	return t;
}

void table_add(struct table *t, const char *text)
{
	struct buf cell = BUF_INIT(SIZE_MAX / 2);

	/* Untrusted text must not move the cursor. */
	escape_line(&cell, text ? text : "", 0);
	*ARRAY_PUSH(t->cells, t->n_cells) = buf_detach(&cell);
}

void table_add_int(struct table *t, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)n);
	table_add(t, text);
}

const char *age_text(const json_t *obj, const char *key, const char *missing, char out[AGE_BYTES])
{
	const char *text = json_get_str(obj, key);
	int64_t then_ms;

	if (!text || rfc3339_parse(text, &then_ms))
		return missing;
	int64_t s = (clock_wall_ms() - then_ms) / 1000;
	if (s < 0)
		s = 0;
	if (s < 60)
		snprintf(out, AGE_BYTES, "%lld s ago", (long long)s);
	else if (s < 3600)
		snprintf(out, AGE_BYTES, "%lld min ago", (long long)s / 60);
	else if (s < 48 * 3600)
		snprintf(out, AGE_BYTES, "%lld h ago", (long long)s / 3600);
	else
		snprintf(out, AGE_BYTES, "%lld days ago", (long long)s / 86400);
	return out;
}

void table_add_age(struct table *t, const json_t *obj, const char *key) { table_add(t, AGE(obj, key, "")); }

/* Terminal columns of UTF-8 text, at one column a character. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		if (((unsigned char)*s & 0xc0) != 0x80)
			n++;
	return n;
}

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define CYAN   "\033[36m"

static const char *colour_of_state(const char *cell)
{
	static const struct {
		const char *word, *colour;
	} colours[] = {{"done", GREEN}, {"ok", GREEN}, {"planned", GREEN}, {"running", CYAN}, {"acknowledged", CYAN},
	    {"sent", CYAN}, {"held", YELLOW}, {"queued", YELLOW}, {"accepted", YELLOW}, {"failed", RED},
	    {"unhealthy", RED}, {"overdue", RED}, {"expired", RED}};

	for (size_t i = 0; i < ARRAY_LEN(colours); i++)
		if (str_eq(cell, colours[i].word))
			return colours[i].colour;
	return NULL;
}

struct layout {
	size_t widths[LIST_COLUMNS_MAX];
	bool is_last_below; /* the last column is printed below its row */
};

static void print_row(
    const struct ctl *ctl, const struct layout *l, const char *const *cells, size_t n, bool is_heading)
{
	size_t n_in_line = l->is_last_below ? n - 1 : n;

	for (size_t c = 0; c < n_in_line; c++) {
		const char *text = cells[c], *colour = NULL;
		bool is_last = c + 1 == n_in_line;
		size_t n_columns = text_width(text), bytes = strlen(text), width = l->widths[c];

		if (ctl->has_colour)
			colour = is_heading ? "\033[2m" : colour_of_state(text);
		if (is_last && n_columns < width)
			width = n_columns;
		bool is_cut = n_columns > width;
		if (is_cut) {
			for (bytes = 0, n_columns = 1; text[bytes] && n_columns < width; n_columns++)
				while (((unsigned char)text[++bytes] & 0xc0) == 0x80)
					;
		}
		printf("%s%.*s%s%s%*s%s", colour ? colour : "", (int)bytes, text, is_cut ? "…" : "",
		    colour ? "\033[0m" : "", (int)(width - n_columns), "", is_last ? "\n" : "  ");
	}
	if (l->is_last_below && !is_heading && *cells[n - 1])
		printf("    %s\n", cells[n - 1]);
}

void table_print(struct table *t, const struct ctl *ctl, const char *empty)
{
	struct layout layout = {.is_last_below = false}, *l = &layout;
	size_t used = 0, last = t->n_columns - 1, room = (size_t)ctl->width;

	if (t->n_cells == 0) {
		puts(empty);
	} else {
		for (size_t c = 0; c < t->n_columns; c++)
			l->widths[c] = text_width(t->headings[c]);
		for (size_t i = 0; i < t->n_cells; i++)
			if (text_width(t->cells[i]) > l->widths[i % t->n_columns])
				l->widths[i % t->n_columns] = text_width(t->cells[i]);
		for (size_t c = 0; c < last; c++)
			used += l->widths[c] + GAP;
		/* Only a terminal gets a narrower table; a pipe gets every cell whole. */
		l->is_last_below = last > 0 && ctl->is_terminal && used + l->widths[last] > room;
		/* Narrows the widest column until a line fits. */
		for (used -= l->is_last_below ? GAP : 0; l->is_last_below && used > room; used--) {
			size_t widest = 0;

			for (size_t c = 1; c < last; c++)
				if (l->widths[c] > l->widths[widest])
					widest = c;
			if (l->widths[widest] <= NARROWEST)
				break;
			l->widths[widest]--;
		}
		print_row(ctl, l, t->headings, t->n_columns, true);
		for (size_t i = 0; i < t->n_cells; i += t->n_columns)
			print_row(ctl, l, (const char *const *)t->cells + i, t->n_columns, false);
	}
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	FREE_ALL(t->cells, t);
}

/* ---- requests ---- */

/* Explains why the socket does not answer. libcurl's message names a host and a port, which do not
 * exist here, so connect() is tried once more for its errno. */
static void explain_silence(const char *path, const struct error *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int why = ENAMETOOLONG;

	if (strlen(path) < sizeof(address.sun_path)) {
		memcpy(address.sun_path, path, strlen(path));
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			why = 0;
		else
			why = errno;
		if (fd >= 0)
			close(fd);
	}
	if (why == ENOENT || why == ECONNREFUSED)
		fprintf(stderr, "outpostctl: outpostd is not running (no process listens on %s)\n", path);
	else if (why == EACCES)
		fprintf(
		    stderr, "outpostctl: %s: %s; run this as the user of outpostd, or as root\n", path, strerror(why));
	else
		fprintf(
		    stderr, "outpostctl: outpostd does not answer on %s: %s\n", path, why ? strerror(why) : e->text);
}

int server_ask(const struct ctl *ctl, const char *method, const char *path, json_t *body, json_t **ret)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	char *socket = NULL, *state_dir = NULL, *text = body ? json_text(body) : NULL;
	char *url = xasprintf("http://localhost%s", path);
	struct error why = {0};
	bool is_found = !config_state_dir(ctl->config_path, &state_dir, &why);
	struct http_call call = {
	    .method = method,
	    .url = url,
	    .headers = headers,
	    .body = text,
	    .body_bytes = text ? strlen(text) : 0,
	    .unix_socket_path = is_found ? (socket = path_join(state_dir, "control.sock")) : NULL,
	    .allow_plain_http = true,
	    .total_timeout_ms = BACKUP_TIMEOUT_MS,
	};
	int exit_code = EXIT_FAILED;

	*ret = NULL;
	if (!is_found) {
		fprintf(stderr,
		    "outpostctl: cannot find the service: %s\n"
		    "Give the configuration file of outpostd: outpostctl -c FILE\n",
		    why.text);
	} else if (http_call_blocking(&call, "outpostctl", NULL)) {
		explain_silence(socket, &call.why);
	} else if (json_parse(buf_str(&call.answer), call.answer.len, ret, &why)) {
		fprintf(stderr, "outpostctl: the service's answer is not JSON (%s)\n", why.text);
	} else if (call.status >= 400) {
		const char *error = json_get_str(*ret, "error");
		struct buf line = BUF_INIT(SIZE_MAX / 2);

		/* The text may quote untrusted input. */
		escape_line(&line, error ? error : "the service refused the request", 0);
		fprintf(stderr, "outpostctl: %s\n", buf_str(&line));
		buf_release(&line);
		json_decref(*ret);
		*ret = NULL;
	} else {
		exit_code = EXIT_DONE;
	}
	http_call_release(&call);
	FREE_ALL(socket, state_dir, text, url);
	json_decref(body);
	return exit_code;
}

int server_show(const struct ctl *ctl, const char *method, const char *path, json_t *body, json_t **ret)
{
	int exit_code = server_ask(ctl, method, path, body, ret);

	if (!exit_code && ctl->is_json) {
		exit_code = server_print_json(*ret);
		*ret = NULL;
	}
	return exit_code;
}

int server_print_json(json_t *v)
{
	json_dumpf(v, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(v);
	return EXIT_DONE;
}

void server_print_rows(const struct ctl *ctl, const json_t *answer, const struct server_list *list)
{
	struct table *t = table_new(list->headings);
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(answer, list->key), i, row) list->add_row(t, row);
	table_print(t, ctl, list->empty);
}

int server_print_list(const struct ctl *ctl, const char *path, const struct server_list *list)
{
	json_t *v;
	int exit_code = server_show(ctl, "GET", path, NULL, &v);

	if (v)
		server_print_rows(ctl, v, list);
	json_decref(v);
	return exit_code;
}
