#include "model/schedule.h"

#include "base/alloc.h"
#include "base/hash.h"

#define MINUTE_MS INT64_C(60000)
#define SECOND_MS INT64_C(1000)

enum { GAP_PARTS = 4 };

/* The first 32 bits of the name's SHA-256, as a share. */
static double share_of(const char *name)
{
	uint8_t digest[SHA256_BYTES];
	uint32_t n = 0;

	sha256(name, strlen(name), digest);
	for (int i = 0; i < 4; i++)
		n = n << 8 | digest[i];
	return (double)n / 4294967296.0;
}

void schedule_init(
    struct schedule *s, const char *name, const char *const *texts, int64_t jitter_ms)
{
	struct error ignored = {0};

	*s = (struct schedule){.jitter_ms = jitter_ms, .share = share_of(name)};
	for (; texts && *texts; texts++) {
		s->crons = xrealloc(s->crons, (s->n + 1) * sizeof(*s->crons));
		if (cron_parse(*texts, &s->crons[s->n], &ignored) == 0)
			s->n++;
	}
}

void schedule_release(struct schedule *s)
{
	free(s->crons);
	*s = (struct schedule){0};
}

/* The first due time after that; 0: there is none. */
static int64_t next_due(const struct schedule *s, int64_t after_ms)
{
	int64_t first = 0;

	if (after_ms < 0)
		after_ms = 0;
	for (size_t i = 0; i < s->n; i++) {
		int64_t due = cron_next(&s->crons[i], after_ms);

		if (!first || due < first)
			first = due;
	}
	return first;
}

int64_t schedule_start_ms(const struct schedule *s, int64_t due_ms)
{
	int64_t most = (next_due(s, due_ms) - due_ms) / GAP_PARTS;
	int64_t delay;

	if (most > s->jitter_ms)
		most = s->jitter_ms;
	delay = (int64_t)((double)most * s->share);
	return due_ms + delay / SECOND_MS * SECOND_MS;
}

/* The last due time in (after_ms, until_ms], 0: none. Halves the span in whole minutes: that a due
 * time follows within it is true up to the one that is looked for, and false behind it. */
static int64_t last_due(const struct schedule *s, int64_t after_ms, int64_t until_ms)
{
	int64_t low = after_ms / MINUTE_MS, high = until_ms / MINUTE_MS + 1;
	int64_t first = next_due(s, after_ms);

	if (!first || first > until_ms)
		return 0;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (next_due(s, middle * MINUTE_MS) <= until_ms)
			low = middle;
		else
			high = middle;
	}
	return next_due(s, low * MINUTE_MS > after_ms ? low * MINUTE_MS : after_ms);
}

struct schedule_look schedule_look(const struct schedule *s, int64_t last_ms, int64_t now_ms)
{
	struct schedule_look l = {0};

	if (last_ms > now_ms)
		last_ms = now_ms;
	l.due_ms = last_due(s, last_ms, now_ms);
	/* Its delay runs yet; the one before it has begun its own, and ended it, by now. */
	if (l.due_ms && schedule_start_ms(s, l.due_ms) > now_ms)
		l.due_ms = last_due(s, last_ms, l.due_ms - 1);
	if (l.due_ms)
		l.is_missed = next_due(s, last_ms) != l.due_ms ||
			      now_ms - schedule_start_ms(s, l.due_ms) > MINUTE_MS;
	l.last_ms = l.due_ms ? l.due_ms : last_ms;
	l.next_due_ms = next_due(s, l.last_ms);
	if (l.next_due_ms)
		l.next_ms = schedule_start_ms(s, l.next_due_ms);
	return l;
}

struct schedule_look schedule_look_at_other(
    const struct schedule *s, const struct schedule *before, int64_t last_ms, int64_t now_ms)
{
	struct schedule_look old = schedule_look(before, last_ms, now_ms), l;
	int64_t since_ms = now_ms;

	/* Both have it, and its delay runs yet. */
	if (old.next_due_ms && old.next_due_ms <= now_ms &&
	    next_due(s, old.next_due_ms - 1) == old.next_due_ms)
		since_ms = old.next_due_ms - 1;
	l = schedule_look(s, since_ms, now_ms);
	if (old.due_ms && !l.due_ms) {
		l.due_ms = old.due_ms;
		l.is_missed = old.is_missed;
	}
	return l;
}
