/* Decides when one installation may send its next request. It keeps GitHub's hourly quota, its secondary limits (with
 * or without Retry-After) and its limit on content writes. A comment is a content write; a dispatch is not.
 *
 * Pure: the caller passes the time, in milliseconds of the clock that does not jump. Thread: one at a time. */
#pragma once

enum budget_kind { BUDGET_PLAIN, BUDGET_CONTENT, N_BUDGET_KINDS };

/* Allows at most n events in any span of span_ms: the n-th last event must be at least that long ago. */
struct budget_window {
	int64_t *at; /* ring of n, oldest at `next`; INT64_MIN: never */
	int n, next;
	int64_t span_ms;
};

void budget_window_init(struct budget_window *w, int n, int64_t span_ms);
void budget_window_release(struct budget_window *w);
/* Changes n and keeps the newest events. */
void budget_window_resize(struct budget_window *w, int n);
/* How long until one more event is allowed, if the span may have `share` events (1 to n); 0: now. */
int64_t budget_window_wait_ms(const struct budget_window *w, int share, int64_t now_ms);
void budget_window_add(struct budget_window *w, int64_t now_ms);

struct budget {
	int64_t remaining;     /* of the hourly quota; -1: not known */
	int64_t reset_wall_ms; /* 0: not known */
	int64_t blocked_until_ms;
	int n_secondary; /* secondary limits without a time, in a row */
	int64_t last_content_ms;
	struct budget_window minute, hour; /* content writes */
};

/* The time between two content writes: a second, as GitHub advises. An installation that may write more often than GitHub's limit has
 * a server without it, so its time is shorter in proportion. */
int64_t budget_gap_ms(int writes_per_minute);
void budget_init(struct budget *b, int writes_per_minute);
void budget_release(struct budget *b);
/* How long to wait before the next request of this kind; 0: send now. */
int64_t budget_wait_ms(const struct budget *b, enum budget_kind kind, int64_t now_ms);
/* A request of this kind goes out now. */
void budget_spend(struct budget *b, enum budget_kind kind, int64_t now_ms);

/* The parts of an answer that concern limits. */
struct budget_signs {
	int status;
	int64_t remaining;      /* x-ratelimit-remaining; -1: none */
	int64_t reset_wall_ms;  /* x-ratelimit-reset; 0: none */
	int64_t retry_after_ms; /* Retry-After; -1: none */
	bool is_secondary;      /* its text names a secondary limit */
};
/* Updates the budget from an answer. If GitHub refused the request because of a limit, returns how long nothing
 * may be sent, else 0. */
int64_t budget_learn(struct budget *b, const struct budget_signs *s, int64_t now_ms, int64_t now_wall_ms);
