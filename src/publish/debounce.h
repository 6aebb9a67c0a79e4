/* When a comment that has something new to say may be written: at least min_interval behind
 * the last time, but the first failure and the last result go at once. What looks like the
 * last result may be followed by another (a vendor whose jobs come one by one), so each pull
 * request has an allowance for that. Private to publish/. */
#ifndef PUBLISH_DEBOUNCE_H
#define PUBLISH_DEBOUNCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEBOUNCE_PULLS = 64, DEBOUNCE_ALLOWANCE = 6 };
#define DEBOUNCE_WINDOW_MS (INT64_C(10) * 60 * 1000)

/* Who used the allowance lately; zero-initialise. Kept in memory only: a restart gives
 * everybody a new one. */
struct debounce {
	struct debounce_pull {
		int64_t number, since_wall_ms;
		int n_used;
	} pulls[DEBOUNCE_PULLS];
	size_t next; /* which is overwritten next */
};

struct debounce_question {
	int64_t number;
	int64_t now_wall_ms, written_wall_ms; /* written: 0 for never */
	int64_t min_interval_ms;
	bool has_red, had_red; /* now; in what was written last */
	bool is_complete;
};

/* The wall time from which it may be written; now or earlier: write it (and, where the
 * allowance was used, it has been counted). */
int64_t debounce_due_ms(struct debounce *d, const struct debounce_question *q);

#endif
