/* When one installation may send its next request. Pure: the caller tells the time.
 *
 * Guarded here: GitHub's hourly quota, its secondary limits (with or without Retry-After)
 * and its limit on content writes (comments), which dispatches are not. */
#ifndef GITHUB_BUDGET_H
#define GITHUB_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum budget_kind { BUDGET_PLAIN, BUDGET_CONTENT, N_BUDGET_KINDS };

/* At most n events in any span: the n-th last one must be a span ago. */
struct budget_window {
	int64_t *at; /* ring of n, oldest at `next`; INT64_MIN: never */
	int n, next;
	int64_t span_ms;
};

void budget_window_init(struct budget_window *w, int n, int64_t span_ms);
void budget_window_release(struct budget_window *w);
/* Another n; what was counted stays counted. */
void budget_window_resize(struct budget_window *w, int n);
int64_t budget_window_wait_ms(const struct budget_window *w, int64_t now_ms);
void budget_window_add(struct budget_window *w, int64_t now_ms);
int budget_window_left(const struct budget_window *w, int64_t now_ms);

struct budget {
	int64_t remaining;     /* of the hourly quota; -1: not known */
	int64_t reset_wall_ms; /* 0: not known */
	int64_t blocked_until_ms;
	int n_secondary; /* limits without a time, one after the other */
	int64_t last_content_ms;
	struct budget_window minute, hour; /* content writes */
};

void budget_init(struct budget *b, int writes_per_minute);
void budget_release(struct budget *b);
/* 0: send now. */
int64_t budget_wait_ms(const struct budget *b, enum budget_kind kind, int64_t now_ms);
void budget_spend(struct budget *b, enum budget_kind kind, int64_t now_ms);

/* What an answer says about limits. */
struct budget_signs {
	int status;
	int64_t remaining;      /* x-ratelimit-remaining; -1: none */
	int64_t reset_wall_ms;  /* x-ratelimit-reset; 0: none */
	int64_t retry_after_ms; /* Retry-After; -1: none */
	bool is_secondary;      /* its text speaks of a secondary limit */
};
/* Learns from an answer. Returns for how long nothing may be sent when it refused the
 * request because of a limit, else 0. */
int64_t budget_learn(
    struct budget *b, const struct budget_signs *s, int64_t now_ms, int64_t now_wall_ms);

#endif
