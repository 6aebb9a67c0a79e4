/* Structured log lines on stderr: one per event, as key=value or JSON, or aligned for people.
 *
 *   log_event(LOG_INFO, "delivery_accepted", LOG_S("delivery", guid), LOG_I("bytes", n));
 *
 * Thread: any. Values are escaped and cut to 1 KiB. Never pass a secret, a token or a signature. The layers
 * base, model, documents, text and config do not log: they return an error, and their caller logs it. */
#pragma once

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON, LOG_PEOPLE, LOG_PEOPLE_COLOUR };

struct log_field {
	const char *key;  /* NULL ends the list */
	const char *text; /* NULL: `number` is the value */
	int64_t number;
};

static inline const char *log_text(const char *v) { return v ? v : ""; }

#define LOG_S(k, v) ((struct log_field){.key = (k), .text = log_text(v)})
#define LOG_I(k, v) ((struct log_field){.key = (k), .number = (v)})

#define log_event(level, ev, ...)                                                                                      \
	log_write(level, ev, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})

void log_setup(enum log_level level, enum log_format format);
/* LOG_TEXT becomes LOG_PEOPLE_COLOUR if stderr is a terminal, or LOG_PEOPLE if NO_COLOR is set or the
 * terminal has no colours. Every other format stays. */
enum log_format log_format_on_terminal(enum log_format format);
bool log_is_on(enum log_level level);
void log_write(enum log_level level, const char *ev, const struct log_field *fields);

/* Between log_hold() and log_release() the lines of this thread are collected and written together, because
 * one write for each of many deliveries costs much of the time of accepting one. A warning or an error is
 * written at once, together with the lines before it. A crash loses the collected lines. Calls do not nest. */
void log_hold(void);
void log_release(void);

/* Lets one line of a kind pass each second: returns true if the line may be written now, with the number of
 * lines skipped since the last one in *ret_n_skipped. Zero-initialise the limit, except longest_ms: while lines keep coming, the pause
 * doubles until it is that long, because a trouble may last for hours. Thread: one at a time. */
enum { LOG_LONGEST_PAUSE_MS = 60 * 1000 };
struct log_limit {
	int64_t longest_ms;
	int64_t pause_ms, next_mono_ms;
	int64_t n_skipped;
};
bool log_limit_pass(struct log_limit *l, int64_t now_mono_ms, int64_t *ret_n_skipped);
