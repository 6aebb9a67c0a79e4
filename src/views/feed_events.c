/* An episode makes one or two events: its beginning and its end. The tests that broke, or work again, with one periodic
 * run make one event. */
#include "views/feed_events.h"

#include "db/record_rows.h"
#include "history/red_episodes.h"

#define EPISODE_END_RECORD(F, S)                                                                                       \
	F(S, INT, id, NULL, "id", "")                                                                                  \
	F(S, BOOL, is_over, NULL, "is_over", "")                                                                       \
	F(S, TIME, at_ms, NULL, "at_ms", "")
RECORD_LOCAL(episode_end, EPISODE_END_RECORD)

/* On a branch, FLAKY and KNOWN failures do not count as a breakage (history/run_note.c). */
#define IS_BROKEN                                                                                                      \
	" v.change_id = ?1 AND v.accelerator = ?2"                                                                     \
	" AND v.attribution IN ('NEW', 'BASE', 'UNCLASSIFIED')"

/* A test t with its dtype. */
#define TEST_NAME "t.suite || '/' || t.name || CASE t.dtype WHEN '' THEN '' ELSE ' (' || t.dtype || ')' END"

static void read_event(const struct view *d, const struct episode_end *end, struct feed_event *e)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("e.first_bad_change", FEED_EVENT_RECORD,
		"FROM red_episode e JOIN accelerator a ON a.name = e.accelerator LEFT JOIN change "
		"b ON b.id = e.first_bad_change LEFT JOIN change g ON g.id = e.ended_change WHERE e.id = ?1"),
	    V_INT(end->id), V_INT(end->is_over));

	*e = (struct feed_event){.id = end->id, .at_ms = end->at_ms};
	if (!rows_next(r))
		return;
	int64_t change_id = rows_key_number(r);
	record_read(r, &feed_event_record, e);
	rows_end(r);
	if (e->kind == FEED_RED) {
		r = db_rows(d,
		    "SELECT " TEST_NAME " FROM verdict v JOIN test t ON t.id = v.test_id WHERE" IS_BROKEN
		    " ORDER BY 1 LIMIT ?3",
		    V_INT(change_id), V_TEXT(e->accelerator), V_INT(FEED_TESTS_MAX));
		e->tests = strv_copy(NULL);
		while (rows_next(r))
			strv_add(&e->tests, rows_key(r));
		e->n_tests = db_int(
		    d, 0, "SELECT COUNT(*) FROM verdict v WHERE" IS_BROKEN, V_INT(change_id), V_TEXT(e->accelerator));
		e->is_silence = red_tests_are_silence(d, change_id, e->accelerator);
	}
}

/* Newest first by either time, each along its own index. */
static void read_episodes(const struct view *d, struct list_feed_events *l)
{
	struct episode_end *ends = NULL;
	size_t n = 0;
	struct rows *r = db_rows(d,
	    RECORD_QUERY(EPISODE_END_RECORD,
		"FROM (SELECT * FROM (SELECT e.id AS id, 0 AS is_over, e.first_bad_ms AS at_ms "
		"FROM red_episode e JOIN accelerator a ON a.name = e.accelerator AND a.level > 1 "
		"ORDER BY e.first_bad_ms DESC, e.id DESC LIMIT ?1) red UNION ALL SELECT * FROM (SELECT e.id, "
		"1, e.ended_ms FROM red_episode e JOIN accelerator a ON a.name = e.accelerator "
		"AND a.level > 1 WHERE e.ended_ms IS NOT NULL ORDER BY e.ended_ms DESC, e.id DESC LIMIT ?1) "
		"green) newest ORDER BY at_ms DESC, is_over DESC, id DESC LIMIT ?1"),
	    V_INT(FEED_EVENTS_MAX));

	RECORDS_READ(r, episode_end, ends, n);
	for (size_t i = 0; i < n; i++)
		read_event(d, &ends[i], &l->list[l->n++]);
	free(ends);
}

/* ---- periodic runs ---- */

/* Of each state; with more broken tests the event counts too few. */
enum { NIGHTLY_TESTS_MAX = 5000 };

/* An enum feed_event_kind of each test. */
#define NIGHTLY_TESTS                                                                                                  \
	"(SELECT * FROM (SELECT accelerator, first_bad_day AS day, 3 AS kind, test_id"                                 \
	"  FROM history WHERE state = 'regression' ORDER BY suite, test_id, accelerator LIMIT ?1) a"                   \
	" UNION ALL SELECT * FROM (SELECT accelerator, first_bad_day, 3, test_id"                                      \
	"  FROM history WHERE state = 'still_failing' ORDER BY suite, test_id, accelerator LIMIT ?1) b"                \
	" UNION ALL SELECT * FROM (SELECT accelerator, since_day, 4, test_id"                                          \
	"  FROM history WHERE state = 'fixed' ORDER BY suite, test_id, accelerator LIMIT ?1) c) h"
_Static_assert(FEED_NIGHTLY_RED == 3 && FEED_NIGHTLY_GREEN == 4, "NIGHTLY_TESTS has their numbers");

static void read_nightlies(const struct view *d, struct list_feed_events *l)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(FEED_NIGHTLY_RECORD,
		"FROM " NIGHTLY_TESTS
		" JOIN accelerator a ON a.name = h.accelerator AND a.level > 1 JOIN history_run n "
		"ON n.accelerator = h.accelerator AND n.day = h.day GROUP BY h.accelerator, h.day, "
		"h.kind, a.title, n.at_ms, n.upstream_sha ORDER BY h.day DESC, h.accelerator, h.kind LIMIT ?2"),
	    V_INT(NIGHTLY_TESTS_MAX), V_INT(FEED_EVENTS_MAX));

	while (rows_next(r)) {
		struct feed_event *e = &l->list[l->n++];

		*e = (struct feed_event){.tests = strv_copy(NULL)};
		record_read(r, &feed_nightly_record, e);
	}
}

#define NIGHTLY_TEST_OF_RECORD(F, S)                                                                                   \
	F(S, FEED_KIND, kind, NULL, "h.kind", "")                                                                      \
	F(S, INT, day, NULL, "h.day", "")                                                                              \
	F(S, INT, test_id, NULL, "h.test_id", "")
RECORD_LOCAL(nightly_test_of, NIGHTLY_TEST_OF_RECORD)

static void read_nightly_tests(const struct view *d, struct feed_event *list, size_t n)
{
	struct rows *r = db_rows(d, RECORD_QUERY_BY("h.accelerator", NIGHTLY_TEST_OF_RECORD, "FROM " NIGHTLY_TESTS),
	    V_INT(NIGHTLY_TESTS_MAX));

	while (rows_next(r)) {
		struct nightly_test_of t;

		record_read(r, &nightly_test_of_record, &t);
		for (size_t i = 0; i < n; i++) {
			if (list[i].kind != t.kind || list[i].id != t.day ||
			    strv_len((const char *const *)list[i].tests) >= FEED_TESTS_MAX ||
			    !str_eq(list[i].accelerator, rows_key(r)))
				continue;
			char *name = db_text(d, "SELECT " TEST_NAME " FROM test t WHERE t.id = ?1", V_INT(t.test_id));
			strv_add(&list[i].tests, name ? name : "?");
			free(name);
		}
	}
}

/* The newest first, and always in one order. */
static int by_time(const void *x, const void *y)
{
	const struct feed_event *a = x, *b = y;

	if (a->at_ms != b->at_ms)
		return a->at_ms > b->at_ms ? -1 : 1;
	if (a->id != b->id)
		return a->id > b->id ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind > b->kind ? -1 : 1;
	return strcmp(a->accelerator, b->accelerator);
}

static int list_feed_events_run(struct store_query *q, const struct view *d)
{
	struct list_feed_events *l = CONTAINER_OF(q, struct list_feed_events, q);

	read_episodes(d, l);
	size_t n_episodes = l->n;
	read_nightlies(d, l);
	read_nightly_tests(d, &l->list[n_episodes], l->n - n_episodes);
	if (db_status(d)) {
		list_feed_events_release(l);
		return 0;
	}
	qsort(l->list, l->n, sizeof(l->list[0]), by_time);
	while (l->n > FEED_EVENTS_MAX)
		feed_event_release(&l->list[--l->n]);
	return 0;
}

STORE_QUERY(list_feed_events)

void list_feed_events_release(struct list_feed_events *q)
{
	for (size_t i = 0; i < q->n; i++)
		feed_event_release(&q->list[i]);
	q->n = 0;
}
