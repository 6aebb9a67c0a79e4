#include <stdatomic.h>
#include <sys/uio.h>

enum {
	LINE_MAX_BYTES = 16384,
	VALUE_MAX_BYTES = 1024,
	END_BYTES = 2,
	/* A pipe takes this many bytes in one piece, so lines of several threads do not mix. */
	HELD_MAX_BYTES = PIPE_BUF,
};

static _Atomic int log_level_now = LOG_INFO;
static _Atomic int log_format_now = LOG_TEXT;

void log_setup(enum log_level level, enum log_format format)
{
	log_level_now = (int)level;
	log_format_now = (int)format;
}

enum log_format log_format_on_terminal(enum log_format format)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (format != LOG_TEXT || !isatty(STDERR_FILENO))
		return format;
	if ((no_colour && *no_colour) || !terminal || strcmp(terminal, "dumb") == 0)
		return LOG_PEOPLE;
	return LOG_PEOPLE_COLOUR;
}

bool log_is_on(enum log_level level) { return (int)level >= log_level_now; }

#define DIM "\x1b[2m"
#define OFF "\x1b[0m"

static bool is_for_people(enum log_format format) { return format == LOG_PEOPLE || format == LOG_PEOPLE_COLOUR; }

static void line_put_byte(struct buf *b, unsigned char c, enum log_format format)
{
	buf_appendf(b, format == LOG_JSON ? "\\u00%02x" : "\\x%02x", c);
}

static void line_put_number(struct buf *b, int64_t number)
{
	char text[24], *at = text + sizeof(text);
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

	do
		*--at = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (number < 0)
		*--at = '-';
	buf_append(b, at, (size_t)(text + sizeof(text) - at));
}

static void line_put_text(struct buf *b, const char *s, enum log_format format)
{
	size_t n = utf8_cut(s, strlen(s), VALUE_MAX_BYTES);
	bool is_word = n > 0;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f || s[i] == '"' || s[i] == '=' ||
		    s[i] == '\\')
			is_word = false;
	if (is_word && format != LOG_JSON)
		buf_append(b, s, n);
	else {
		/* Writes the text in quotes, and control characters (also the C1 ones) and bad
		 * UTF-8 as \xNN or \u00NN. */
		bool is_utf8 = utf8_is_valid(s, n);

		buf_append_char(b, '"');
		for (size_t i = 0; i < n; i++) {
			unsigned char c = (unsigned char)s[i];

			if (c == '"' || c == '\\')
				buf_appendf(b, "\\%c", c);
			else if (c == '\n')
				buf_append_str(b, "\\n");
			else if (is_utf8 && c == 0xc2 && (unsigned char)s[i + 1] < 0xa0)
				line_put_byte(b, (unsigned char)s[++i], format); /* U+0080 to U+009F */
			else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_utf8))
				line_put_byte(b, c, format);
			else
				buf_append_char(b, (char)c);
		}
		buf_append_char(b, '"');
	}
}

/* A field that does not fit is left out, so that a line always ends as one. */
static void line_put_field(struct buf *b, const struct log_field *f, enum log_format format)
{
	size_t before = b->len;

	if (is_for_people(format) && f->text && !*f->text)
		return;
	buf_append_str(b, format == LOG_JSON ? ",\"" : format == LOG_PEOPLE_COLOUR ? DIM " " : " ");
	buf_append_str(b, f->key);
	buf_append_str(b, format == LOG_JSON ? "\":" : format == LOG_PEOPLE_COLOUR ? "=" OFF : "=");
	if (f->text)
		line_put_text(b, f->text, format);
	else
		line_put_number(b, f->number);
	if (b->is_overflow || b->max - b->len < END_BYTES) {
		b->len = before;
		b->data[before] = '\0';
		b->is_overflow = false;
	}
}

/* The lines since log_hold(). `line` keeps its memory, so that a line costs no allocation. */
static _Thread_local struct {
	bool is_on;
	struct buf line, text;
} held = {.line = BUF_INIT(LINE_MAX_BYTES), .text = BUF_INIT(HELD_MAX_BYTES)};

/* A failure to write the log cannot be reported anywhere. */
static void line_write(const struct buf *b)
{
	while (write(STDERR_FILENO, b->data, b->len) < 0 && errno == EINTR)
		;
}

static void write_held(void)
{
	if (held.text.len > 0)
		line_write(&held.text);
	buf_clear(&held.text);
}

void log_hold(void) { held.is_on = true; }

void log_release(void)
{
	held.is_on = false;
	write_held();
}

static void line_compose(struct buf *line, enum log_level level, const char *ev, const struct log_field *fields)
{
	static const char *const levels[] = {"debug", "info", "warn", "error"};
	static const char *const signs[] = {" ", "\u00b7", "!", "\u2717"};
	static const char *const colours[] = {DIM, "", "\x1b[33m", "\x1b[31m"};
	enum log_format format = (enum log_format)log_format_now;
	int64_t now_ms = clock_wall_ms();

	if (is_for_people(format)) {
		/* The local time, a sign for the level, and the event. The sign shows the level without colours, too. */
		bool has_colour = format == LOG_PEOPLE_COLOUR;
		const char *colour = has_colour ? colours[level] : "", *off = *colour ? OFF : "";
		time_t now_s = (time_t)(now_ms / 1000);
		struct tm now;

		localtime_r(&now_s, &now);
		buf_appendf(line, "%s%02d:%02d:%02d%s  %s%s %-18s%s", has_colour ? DIM : "", now.tm_hour, now.tm_min,
		    now.tm_sec, has_colour ? OFF : "", colour, signs[level], ev, off);
	} else {
		static _Thread_local char time[RFC3339_BYTES];
		static _Thread_local int64_t time_s = -1;
		bool is_json = format == LOG_JSON;

		if (time_s != now_ms / 1000)
			rfc3339_format(now_ms, time);
		time_s = now_ms / 1000;
		buf_append_str(line, is_json ? "{\"time\":\"" : "time=");
		buf_append(line, time, 19); /* the fraction goes between the seconds and the Z */
		const char fraction[] = {'.', (char)('0' + now_ms / 100 % 10), (char)('0' + now_ms / 10 % 10),
		    (char)('0' + now_ms % 10), 'Z'};
		buf_append(line, fraction, sizeof(fraction));
		buf_append_str(line, is_json ? "\",\"level\":\"" : " level=");
		buf_append_str(line, levels[level]);
		buf_append_str(line, is_json ? "\",\"ev\":\"" : " ev=");
		buf_append_str(line, ev);
		buf_append_str(line, is_json ? "\"" : "");
	}
	for (; fields->key; fields++)
		line_put_field(line, fields, format);
	buf_append_str(line, format == LOG_JSON ? "}\n" : "\n");
}

void log_write(enum log_level level, const char *ev, const struct log_field *fields)
{
	struct buf line = BUF_INIT(LINE_MAX_BYTES);

	if (!log_is_on(level))
		return;
	if (!held.is_on) {
		line_compose(&line, level, ev, fields);
		line_write(&line);
		buf_release(&line);
		return;
	}
	buf_clear(&held.line);
	line_compose(&held.line, level, ev, fields);
	if (held.text.len + held.line.len > HELD_MAX_BYTES)
		write_held();
	if (held.line.len > HELD_MAX_BYTES)
		line_write(&held.line);
	else
		buf_append(&held.text, held.line.data, held.line.len);
	if (level >= LOG_WARN)
		write_held();
}

bool log_limit_pass(struct log_limit *l, int64_t now_mono_ms, int64_t *ret_n_skipped)
{
	if (now_mono_ms < l->next_mono_ms) {
		l->n_skipped++;
		return false;
	}
	*ret_n_skipped = l->n_skipped;
	l->n_skipped = 0;
	if (!l->pause_ms || now_mono_ms - l->next_mono_ms >= l->longest_ms)
		l->pause_ms = 1000;
	else if (l->pause_ms < l->longest_ms)
		l->pause_ms *= 2;
	l->next_mono_ms = now_mono_ms + l->pause_ms;
	return true;
}
