/* Episodes as the feed tells them, each one or two events: its beginning and its end. And what changed
 * with a periodic run. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "store/db.h"
#include "store/feed_events.h"
#include "store/key.h"
#include "store/red_episodes.h"

/* Newest first by either time, each along an index of its own. */
static void read_ids(struct db *d, struct list_feed_events *l)
{
	struct rows *r = db_rows(d,
	    "SELECT * FROM (SELECT e.id, 0 AS is_over, e.first_bad_ms AS at_ms FROM red_episode e"
	    "  JOIN accelerator a ON a.name = e.accelerator AND a.level > 1"
	    "  ORDER BY e.first_bad_ms DESC LIMIT ?1)"
	    " UNION ALL SELECT * FROM (SELECT e.id, 1, e.ended_ms FROM red_episode e"
	    "  JOIN accelerator a ON a.name = e.accelerator AND a.level > 1"
	    "  WHERE e.ended_ms IS NOT NULL ORDER BY e.ended_ms DESC LIMIT ?1)"
	    " ORDER BY at_ms DESC, is_over DESC, id DESC LIMIT ?1",
	    V_INT(FEED_EVENTS_MAX));

	while (rows_next(r))
		l->list[l->n++] = (struct feed_event){
		    .id = rows_int(r, 0),
		    .kind = rows_int(r, 1) ? FEED_GREEN : FEED_RED,
		    .at_ms = rows_int(r, 2),
		};
}

/* On a branch flaky and known red is nobody's breakage (store/run_note.c). */
#define IS_BROKEN                                                                                  \
	" v.change_id = ?1 AND v.accelerator = ?2"                                                 \
	" AND v.attribution IN ('NEW', 'BASE', 'UNCLASSIFIED')"

static void read_tests(struct db *d, struct feed_event *e, int64_t change_id)
{
	struct rows *r = db_rows(d,
	    "SELECT t.suite || '/' || t.name || CASE t.dtype WHEN '' THEN ''"
	    " ELSE ' (' || t.dtype || ')' END FROM verdict v JOIN test t ON t.id = v.test_id"
	    " WHERE" IS_BROKEN " ORDER BY 1 LIMIT ?3",
	    V_INT(change_id), V_TEXT(e->accelerator), V_INT(FEED_TESTS_MAX));

	e->tests = strv_copy(NULL);
	while (rows_next(r))
		strv_add(&e->tests, rows_text(r, 0));
	e->n_tests = (size_t)db_int(d, 0, "SELECT COUNT(*) FROM verdict v WHERE" IS_BROKEN,
	    V_INT(change_id), V_TEXT(e->accelerator));
}

static void read_event(struct db *d, struct feed_event *e)
{
	struct rows *r = db_rows(d,
	    "SELECT e.accelerator, a.title, e.ref, b.head_sha, g.head_sha, e.last_good_sha,"
	    " e.issue_repository, e.issue_number, e.first_bad_change, e.ended_change"
	    " FROM red_episode e JOIN accelerator a ON a.name = e.accelerator"
	    " LEFT JOIN change b ON b.id = e.first_bad_change"
	    " LEFT JOIN change g ON g.id = e.ended_change WHERE e.id = ?1",
	    V_INT(e->id));
	int64_t change_id;

	if (!rows_next(r))
		return;
	e->accelerator = rows_dup(r, 0);
	e->title = rows_dup(r, 1);
	e->ref = rows_dup(r, 2);
	e->sha = rows_dup(r, e->kind == FEED_RED ? 3 : 4);
	e->last_good_sha = e->kind == FEED_RED ? rows_dup(r, 5) : NULL;
	e->issue_repository = rows_dup(r, 6);
	e->issue_number = rows_int(r, 7);
	change_id = rows_int(r, 8);
	if (e->kind == FEED_GREEN && rows_is_null(r, 9))
		e->kind = FEED_NOT_RED;
	rows_end(r);
	if (e->kind == FEED_RED) {
		read_tests(d, e, change_id);
		e->is_silence = red_tests_are_silence(d, change_id, e->accelerator);
	}
}

/* ---- periodic runs: tests that broke, or work again, with one run are one event ---- */

/* Of each state so many tests are looked at: who breaks more is not told more precisely by it. */
enum { NIGHTLY_TESTS_MAX = 5000 };

#define NIGHTLY_TESTS                                                                              \
	"(SELECT * FROM (SELECT accelerator, first_bad_day AS day, 2 AS kind, test_id"             \
	"  FROM history WHERE state = 'regression' LIMIT ?1)"                                      \
	" UNION ALL SELECT * FROM (SELECT accelerator, first_bad_day, 2, test_id"                  \
	"  FROM history WHERE state = 'still_failing' LIMIT ?1)"                                   \
	" UNION ALL SELECT * FROM (SELECT accelerator, since_day, 3, test_id"                      \
	"  FROM history WHERE state = 'fixed' LIMIT ?1))"

static void read_nightlies(struct db *d, struct list_feed_events *l)
{
	struct rows *r = db_rows(d,
	    "SELECT h.kind, h.day, h.accelerator, a.title, COUNT(*), n.at_ms, n.upstream_sha"
	    " FROM " NIGHTLY_TESTS " h JOIN accelerator a ON a.name = h.accelerator AND a.level > 1"
	    " JOIN history_run n ON n.accelerator = h.accelerator AND n.day = h.day"
	    " GROUP BY h.accelerator, h.day, h.kind ORDER BY h.day DESC, h.accelerator, h.kind"
	    " LIMIT ?2",
	    V_INT(NIGHTLY_TESTS_MAX), V_INT(FEED_EVENTS_MAX));

	while (rows_next(r))
		l->list[l->n++] = (struct feed_event){
		    .kind = rows_int(r, 0) == 2 ? FEED_NIGHTLY_RED : FEED_NIGHTLY_GREEN,
		    .id = rows_int(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .title = rows_dup(r, 3),
		    .n_tests = (size_t)rows_int(r, 4),
		    .at_ms = rows_int(r, 5),
		    .sha = commit_dup(r, 6),
		    .tests = strv_copy(NULL),
		};
}

static void add_test(struct db *d, struct feed_event *e, int64_t test_id)
{
	char *name = db_text(d,
	    "SELECT suite || '/' || name || CASE dtype WHEN '' THEN '' ELSE ' (' || dtype || ')' "
	    "END"
	    " FROM test WHERE id = ?1",
	    V_INT(test_id));

	strv_add(&e->tests, name ? name : "?");
	free(name);
}

static void read_nightly_tests(struct db *d, struct feed_event *list, size_t n)
{
	struct rows *r = db_rows(d, "SELECT kind, day, accelerator, test_id FROM " NIGHTLY_TESTS,
	    V_INT(NIGHTLY_TESTS_MAX));

	while (rows_next(r)) {
		enum feed_event_kind kind =
		    rows_int(r, 0) == 2 ? FEED_NIGHTLY_RED : FEED_NIGHTLY_GREEN;

		for (size_t i = 0; i < n; i++)
			if (list[i].kind == kind && list[i].id == rows_int(r, 1) &&
			    strv_len((const char *const *)list[i].tests) < FEED_TESTS_MAX &&
			    str_eq(list[i].accelerator, rows_text(r, 2)))
				add_test(d, &list[i], rows_int(r, 3));
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

static int events_run(struct store_query *q, struct db *d)
{
	struct list_feed_events *l = CONTAINER_OF(q, struct list_feed_events, q);
	size_t n_episodes;

	read_ids(d, l);
	for (size_t i = 0; i < l->n; i++)
		read_event(d, &l->list[i]);
	n_episodes = l->n;
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

int store_list_feed_events(struct store *s, struct list_feed_events *q)
{
	q->n = 0;
	q->q.run = events_run;
	return store_query(s, &q->q);
}

void list_feed_events_release(struct list_feed_events *q)
{
	for (size_t i = 0; i < q->n; i++)
		feed_event_release(&q->list[i]);
	q->n = 0;
}
