/* What the feed tells: an accelerator broke, or works again. */
#ifndef MODEL_FEED_EVENT_H
#define MODEL_FEED_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FEED_EVENTS_MAX = 50, FEED_TESTS_MAX = 10 };

enum feed_event_kind {
	FEED_RED,   /* it became red on a branch of upstream */
	FEED_GREEN, /* that is over: a test of a newer commit, or of the same one again, is green */
	FEED_NOT_RED,       /* that is over, and nothing passed: what was red is explained */
	FEED_NIGHTLY_RED,   /* tests broke with a periodic run, and are red since */
	FEED_NIGHTLY_GREEN, /* tests work again since one */
};

struct feed_event {
	enum feed_event_kind kind;
	/* With the kind (of a periodic run: and the accelerator) it names the event for ever: of the
	 * episode, or the run's day since 1970. */
	int64_t id;
	int64_t at_ms;
	char *accelerator, *title;
	char *ref;           /* the branch; of a periodic run NULL */
	char *sha;           /* that broke or mended it; NULL: not on record any more */
	char *last_good_sha; /* FEED_RED; NULL: not known */
	char *issue_repository;
	int64_t issue_number; /* 0: there is none */
	/* What was red then, broke or works again, "SUITE/TEST"; NULL-terminated, the first
	 * FEED_TESTS_MAX. Not of FEED_GREEN. */
	char **tests;
	size_t n_tests;  /* all of them */
	bool is_silence; /* FEED_RED: they are all deadlines that passed without a report */
};
void feed_event_release(struct feed_event *e);

#endif
