/* Pacing with a fake clock: the answers to single requests, and six busy hours in which GitHub's budget does not
 * suffice. */
#include <setjmp.h>

#include <cmocka.h>

#include "outbox/pacing.h"

#define S      INT64_C(1000)
#define MINUTE (60 * S)
#define HOUR   (60 * MINUTE)
#define NOW    (1000 * HOUR)

static int64_t ask(struct pacing *p, enum write_class class, int64_t age_ms, int64_t now_ms)
{
	return pacing_reserve(p, &(struct pacing_request){.class = class, .age_ms = age_ms, .now_ms = now_ms});
}

/* ---- one question ---- */

static void test_writes_are_a_second_apart(void **state)
{
	struct pacing p;

	(void)state;
	pacing_init(&p, 80);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW), 0);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW), 0);
	/* two are on their way: a write that is not urgent waits here, not in a queue */
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW), S);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW), 2 * S); /* not at one moment */
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW), 0);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW + 2 * S), 0);
	pacing_release(&p);
}

static void test_a_server_without_limits_gets_writes_faster(void **state)
{
	struct pacing p;
	int n = 0;

	(void)state;
	pacing_init(&p, 8000); /* 10 ms between two */
	while (ask(&p, WRITE_EDIT, 0, NOW) == 0)
		n++;
	assert_in_range(n, 90, 110);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW), 20);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW + 10), 0);
	pacing_release(&p);
}

static void test_urgent_writes_are_handed_over_up_to_a_few_seconds_ahead(void **state)
{
	struct pacing p;
	int n = 0;

	(void)state;
	pacing_init(&p, 80);
	while (ask(&p, WRITE_FIRST_FAILURE, 0, NOW) == 0)
		n++;
	assert_in_range(n, 5, 9); /* the last of them is sent before github/ would refuse it */
	pacing_release(&p);
}

/* The node before wrote 80 in the last half minute: the oldest of them is 30 s old. */
static void test_writes_of_another_node_count(void **state)
{
	struct pacing p;

	(void)state;
	pacing_init(&p, 80);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW), 0); /* an own one, which is among them */
	pacing_forget(&p);
	for (int i = 0; i < 80; i++)
		pacing_note(&p, NOW - 30 * S + i);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW), 30 * S);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW + 30 * S), 0);
	for (int i = 0; i < PACING_PER_HOUR - 81; i++)
		pacing_note(&p, NOW + 31 * S);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW + 10 * MINUTE), MINUTE);
	pacing_release(&p);
}

/* Uses up n of the windows, a second apart; returns the time of the last one. */
static int64_t use_up(struct pacing *p, int n, int64_t gap_ms, int64_t now_ms)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(ask(p, WRITE_FIRST_FAILURE, 0, now_ms), 0);
		now_ms += gap_ms;
	}
	return now_ms;
}

static void test_each_class_leaves_room_for_those_above(void **state)
{
	struct pacing p;
	int64_t now_ms;

	(void)state;
	pacing_init(&p, 80);
	now_ms = use_up(&p, 300, 4 * S, NOW);
	assert_in_range(ask(&p, WRITE_EDIT, 0, now_ms), 1, PACING_LATEST_MS);
	assert_int_equal(ask(&p, WRITE_LAST_RESULT, 0, now_ms), 0);
	now_ms = use_up(&p, 125, 4 * S, now_ms + 4 * S);
	assert_in_range(ask(&p, WRITE_CHECK, 0, now_ms), 1, PACING_LATEST_MS);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, now_ms), 0);
	now_ms = use_up(&p, 73, 4 * S, now_ms + 4 * S);
	assert_in_range(ask(&p, WRITE_FIRST_FAILURE, 0, now_ms), 1, PACING_LATEST_MS);
	/* an hour after the first ones there is room again */
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW + 2 * HOUR), 0);
	pacing_release(&p);
}

static void test_waiting_writes_get_a_larger_share(void **state)
{
	struct pacing p;
	int64_t now_ms;

	(void)state;
	pacing_init(&p, 80);
	now_ms = use_up(&p, 340, 4 * S, NOW);
	assert_in_range(ask(&p, WRITE_EDIT, 0, now_ms), 1, PACING_LATEST_MS);
	assert_int_equal(ask(&p, WRITE_EDIT, 10 * MINUTE, now_ms), 0);
	/* an edit that waited too long is sent even if checks have used their share */
	now_ms = use_up(&p, 135, 4 * S, now_ms + 4 * S);
	assert_in_range(ask(&p, WRITE_CHECK, HOUR, now_ms - 4 * S), 0, 0);
	assert_in_range(ask(&p, WRITE_CHECK, 20 * MINUTE, now_ms), 1, PACING_LATEST_MS);
	assert_int_equal(ask(&p, WRITE_EDIT, PACING_STARVED_MS, now_ms), 0);
	pacing_release(&p);
}

static void test_a_few_writes_a_minute(void **state)
{
	struct pacing p;

	(void)state;
	pacing_init(&p, 80);
	pacing_configure(&p, 2);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW), 0);
	assert_int_equal(ask(&p, WRITE_EDIT, 0, NOW + 30 * S), 30 * S);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW + 30 * S), 0);
	assert_int_equal(ask(&p, WRITE_FIRST_FAILURE, 0, NOW + 31 * S), 29 * S);
	pacing_configure(&p, 1); /* every class has at least one */
	assert_int_equal(ask(&p, WRITE_EDIT, -HOUR, NOW + 10 * MINUTE), 0);
	pacing_release(&p);
}

/* ---- busy hours ---- */

enum {
	N_PULLS = 30,
	N_ACCELERATORS = 12,
	N_JOBS = 3,
	N_CHECKED = 5, /* accelerators at L4: a check run for each of their jobs */
	N_CHECKS = N_CHECKED * N_JOBS,
	N_BURST = 60, /* accelerators that report on one pull request within a minute */
	WRITES_MAX = 20000,
	TICK_MS = 250,
};

/* A comment or a check run: changes are merged until it is written. */
struct text {
	int64_t requested_ms; /* 0: nothing to write */
	int64_t ask_ms;
	int64_t written_ms; /* 0: never */
	bool has_red, had_red, is_complete;
	int64_t red_ms; /* the first failure that is not shown yet; 0: none */
};

struct pull {
	struct text comment, checks[N_CHECKS];
	int n_left; /* jobs of the head that are still to report */
};

struct waits {
	int64_t at[WRITES_MAX];
	size_t n;
};

struct simulation {
	uint64_t random;
	struct pacing pacing;
	struct debounce debounce;
	struct budget github; /* the real budget: it decides when writes that were handed over are sent */
	struct pull pulls[N_PULLS];
	int64_t now_ms, next_event_ms, next_burst_ms;
	int checked_percent;               /* of the reports: for accelerators with check runs */
	int64_t handed[64], red_since[64]; /* handed over, not sent */
	int n_handed;
	struct waits sent, red_waits, edit_waits, check_waits;
	int64_t n_events;
};

/* xorshift64*: the same on every machine. */
static double random_unit(struct simulation *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return (double)((s->random * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

static int random_below(struct simulation *s, int n) { return (int)(random_unit(s) * n); }

/* -ln(u) by its series: no libm for one logarithm. u in (0, 1]. */
static double minus_log(double u)
{
	double sum = 0, y, power;
	int halvings = 0;

	while (u < 0.5) {
		u *= 2;
		halvings++;
	}
	y = 1 - u;
	power = y;
	for (int k = 1; k < 40; k++) {
		sum += power / k;
		power *= y;
	}
	return sum + halvings * 0.69314718055994530942;
}

static void add_wait(struct waits *w, int64_t ms)
{
	assert_true(w->n < WRITES_MAX);
	w->at[w->n++] = ms;
}

static void want(struct simulation *s, struct text *t)
{
	if (!t->requested_ms)
		t->requested_ms = s->now_ms;
	t->ask_ms = s->now_ms;
}

static void new_head(struct simulation *s, struct pull *p)
{
	p->n_left = N_ACCELERATORS * N_JOBS;
	p->comment.has_red = p->comment.had_red = p->comment.is_complete = false;
	p->comment.red_ms = 0;
	want(s, &p->comment);
}

static void report(struct simulation *s, struct pull *p, bool may_fail)
{
	bool is_red = may_fail && random_unit(s) < 0.04;

	s->n_events++;
	if (p->n_left == 0)
		new_head(s, p);
	p->n_left--;
	p->comment.is_complete = p->n_left == 0;
	if (is_red && !p->comment.has_red) {
		p->comment.has_red = true;
		p->comment.red_ms = s->now_ms;
	}
	want(s, &p->comment);
	if (random_below(s, 100) < s->checked_percent)
		want(s, &p->checks[random_below(s, N_CHECKS)]);
}

static void let_things_happen(struct simulation *s)
{
	while (s->next_event_ms <= s->now_ms) {
		report(s, &s->pulls[random_below(s, N_PULLS)], true);
		s->next_event_ms += 1 + (int64_t)(minus_log(1 - random_unit(s)) * (double)HOUR / 500);
	}
	if (s->next_burst_ms <= s->now_ms) {
		struct pull *p = &s->pulls[random_below(s, N_PULLS)];

		for (int i = 0; i < N_BURST; i++)
			report(s, p, i % 10 == 0);
		s->next_burst_ms += 20 * MINUTE;
	}
}

static enum write_class class_of(const struct text *t)
{
	if (t->has_red && !t->had_red)
		return WRITE_FIRST_FAILURE;
	if (!t->written_ms)
		return WRITE_FIRST_COMMENT;
	return t->is_complete ? WRITE_LAST_RESULT : WRITE_EDIT;
}

static bool may_write(struct simulation *s, struct text *t, enum write_class class)
{
	int64_t wait_ms;

	if (!t->requested_ms || t->ask_ms > s->now_ms)
		return false;
	wait_ms = ask(&s->pacing, class, s->now_ms - t->requested_ms, s->now_ms);
	t->ask_ms = s->now_ms + wait_ms;
	return wait_ms == 0;
}

static void hand_over(struct simulation *s, struct text *t, struct waits *waits)
{
	assert_true(s->n_handed < 64);
	s->red_since[s->n_handed] = t->red_ms;
	s->handed[s->n_handed++] = s->now_ms;
	add_wait(waits, s->now_ms - t->requested_ms);
	t->written_ms = s->now_ms;
	t->requested_ms = t->red_ms = 0;
	t->had_red = t->has_red;
}

static void write_comment(struct simulation *s, struct pull *p, int64_t number)
{
	struct text *t = &p->comment;
	int64_t due_ms;

	if (!t->requested_ms || t->ask_ms > s->now_ms)
		return;
	due_ms = debounce_due_ms(&s->debounce, &(struct debounce_question){.number = number,
						   .now_wall_ms = s->now_ms,
						   .written_wall_ms = t->written_ms,
						   .min_interval_ms = MINUTE,
						   .has_red = t->has_red,
						   .had_red = t->had_red,
						   .is_complete = t->is_complete});
	if (due_ms > s->now_ms)
		t->ask_ms = due_ms;
	else if (may_write(s, t, class_of(t)))
		hand_over(s, t, &s->edit_waits);
}

/* github/: sends in order, when its own budget allows it. */
static void send(struct simulation *s)
{
	while (s->n_handed && budget_wait_ms(&s->github, BUDGET_CONTENT, s->now_ms) == 0) {
		assert_true(s->now_ms - s->handed[0] <= 10 * S); /* otherwise GitHub would refuse it */
		budget_spend(&s->github, BUDGET_CONTENT, s->now_ms);
		add_wait(&s->sent, s->now_ms);
		if (s->red_since[0])
			add_wait(&s->red_waits, s->now_ms - s->red_since[0]);
		s->n_handed--;
		memmove(s->handed, s->handed + 1, (size_t)s->n_handed * sizeof(*s->handed));
		memmove(s->red_since, s->red_since + 1, (size_t)s->n_handed * sizeof(*s->red_since));
	}
}

static bool has_waiting_writes(const struct simulation *s)
{
	for (int i = 0; i < N_PULLS; i++) {
		if (s->pulls[i].comment.requested_ms)
			return true;
		for (int k = 0; k < N_CHECKS; k++)
			if (s->pulls[i].checks[k].requested_ms)
				return true;
	}
	return s->n_handed > 0;
}

static void tick(struct simulation *s)
{
	int first = random_below(s, N_PULLS);

	for (int i = 0; i < N_PULLS; i++) {
		int number = (first + i) % N_PULLS;
		struct pull *p = &s->pulls[number];

		write_comment(s, p, number + 1);
		for (int k = 0; k < N_CHECKS; k++)
			if (may_write(s, &p->checks[k], WRITE_CHECK))
				hand_over(s, &p->checks[k], &s->check_waits);
	}
	send(s);
	s->now_ms += TICK_MS;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t highest(struct waits *w, const char *what)
{
	if (w->n == 0)
		return 0;
	qsort(w->at, w->n, sizeof(*w->at), by_size);
	print_message("  %-14s n %5zu  p50 %5lld s  p90 %5lld s  p99 %5lld s  max %5lld s\n", what, w->n,
	    (long long)(w->at[w->n / 2] / S), (long long)(w->at[w->n * 9 / 10] / S),
	    (long long)(w->at[w->n * 99 / 100] / S), (long long)(w->at[w->n - 1] / S));
	return w->at[w->n - 1];
}

static void assert_at_most(const struct waits *sent, size_t n, int64_t span_ms)
{
	for (size_t i = n; i < sent->n; i++)
		assert_true(sent->at[i] - sent->at[i - n] >= span_ms);
}

static struct simulation *run(uint64_t seed, int checked_percent, int writes_per_minute)
{
	struct simulation *s = calloc(1, sizeof(*s));
	int64_t end_ms = NOW + 6 * HOUR;

	assert_non_null(s);
	s->random = seed;
	s->checked_percent = checked_percent;
	s->now_ms = s->next_event_ms = NOW;
	s->next_burst_ms = NOW + 10 * MINUTE;
	pacing_init(&s->pacing, writes_per_minute);
	budget_init(&s->github, writes_per_minute);
	while (s->now_ms < end_ms) {
		let_things_happen(s);
		tick(s);
	}
	/* after the last event everything is shown in the end */
	while (has_waiting_writes(s) && s->now_ms < end_ms + 2 * HOUR)
		tick(s);
	print_message("seed %llu, %d%% of reports with check runs, %d writes a minute: %lld events,"
		      " all shown %lld s after the last\n",
	    (unsigned long long)seed, checked_percent, writes_per_minute, (long long)s->n_events,
	    (long long)((s->now_ms - end_ms) / S));
	assert_false(has_waiting_writes(s));
	assert_at_most(&s->sent, (size_t)writes_per_minute, MINUTE);
	assert_at_most(&s->sent, PACING_PER_HOUR, HOUR);
	return s;
}

static void simulation_free(struct simulation *s)
{
	pacing_release(&s->pacing);
	budget_release(&s->github);
	free(s);
}

static void test_busy_hours(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct simulation *s = run(seed * UINT64_C(7919), 42, 80);

		assert_true(s->n_events > 2500);
		assert_true(s->red_waits.n > 20);
		assert_true(highest(&s->red_waits, "first failures") <= 120 * S);
		assert_true(highest(&s->check_waits, "check runs") <= 10 * MINUTE);
		assert_true(highest(&s->edit_waits, "comments") <= 30 * MINUTE);
		simulation_free(s);
	}
}

/* Every job has a check run: more than GitHub accepts. */
static void test_more_checks_than_github_accepts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct simulation *s = run(seed * UINT64_C(104729), 100, 80);

		assert_true(highest(&s->red_waits, "first failures") <= 120 * S);
		(void)highest(&s->check_waits, "check runs");
		assert_true(highest(&s->edit_waits, "comments") <= HOUR);
		simulation_free(s);
	}
}

static void test_a_small_minute(void **state)
{
	struct simulation *s = run(4711, 42, 10);

	(void)state;
	assert_true(highest(&s->red_waits, "first failures") <= 120 * S);
	(void)highest(&s->check_waits, "check runs");
	assert_true(highest(&s->edit_waits, "comments") <= 30 * MINUTE);
	simulation_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_writes_are_a_second_apart),
	    cmocka_unit_test(test_a_server_without_limits_gets_writes_faster),
	    cmocka_unit_test(test_urgent_writes_are_handed_over_up_to_a_few_seconds_ahead),
	    cmocka_unit_test(test_writes_of_another_node_count),
	    cmocka_unit_test(test_each_class_leaves_room_for_those_above),
	    cmocka_unit_test(test_waiting_writes_get_a_larger_share),
	    cmocka_unit_test(test_a_few_writes_a_minute),
	    cmocka_unit_test(test_busy_hours),
	    cmocka_unit_test(test_more_checks_than_github_accepts),
	    cmocka_unit_test(test_a_small_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
