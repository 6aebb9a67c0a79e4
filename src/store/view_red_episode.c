/* One episode as it is told of, and what was told. */
#include "base/alloc.h"
#include "base/strv.h"
#include "store/red_episodes.h"

static struct red_episode *read_episode(struct db *d, int64_t id)
{
	struct rows *r = db_rows(d,
	    "SELECT e.accelerator, c.repository, e.ref, c.head_sha, e.last_good_sha,"
	    " e.first_bad_ms, e.first_bad_change, e.issue_repository, e.issue_number, e.told_ms,"
	    " e.reminded_ms, e.overdue_ms, e.ended_ms, e.closed_ms, g.head_sha, e.ended_change"
	    " FROM red_episode e LEFT JOIN change c ON c.id = e.first_bad_change"
	    " LEFT JOIN change g ON g.id = e.ended_change WHERE e.id = ?1",
	    V_INT(id));
	struct red_episode *e = NULL;

	if (rows_next(r)) {
		e = xcalloc(1, sizeof(*e));
		*e = (struct red_episode){
		    .id = id,
		    .accelerator = rows_dup(r, 0),
		    .repository = rows_dup(r, 1),
		    .ref = rows_dup(r, 2),
		    .first_bad_sha = rows_dup(r, 3),
		    .last_good_sha = rows_dup(r, 4),
		    .first_bad_ms = rows_int(r, 5),
		    .first_bad_change = rows_int(r, 6),
		    .issue_repository = rows_dup(r, 7),
		    .issue_number = rows_int(r, 8),
		    .told_ms = rows_int(r, 9),
		    .reminded_ms = rows_int(r, 10),
		    .overdue_ms = rows_int(r, 11),
		    .ended_ms = rows_int(r, 12),
		    .closed_ms = rows_int(r, 13),
		    .ended_sha = rows_dup(r, 14),
		    .has_green_again = !rows_is_null(r, 15),
		};
	}
	rows_end(r);
	return e;
}

/* On a branch flaky and known red is nobody's breakage (store/run_note.c). */
#define IS_BROKEN                                                                                  \
	" v.change_id = ?1 AND v.accelerator = ?2"                                                 \
	" AND v.attribution IN ('NEW', 'BASE', 'UNCLASSIFIED')"

char **red_tests(struct db *d, int64_t change_id, const char *accelerator)
{
	char **tests = strv_copy(NULL);
	struct rows *r = db_rows(d,
	    "SELECT t.suite || '/' || t.name || CASE t.dtype WHEN '' THEN ''"
	    " ELSE ' (' || t.dtype || ')' END FROM verdict v JOIN test t ON t.id = v.test_id"
	    " WHERE" IS_BROKEN " ORDER BY 1 LIMIT ?3",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(RED_TESTS_MAX));

	while (rows_next(r))
		strv_add(&tests, rows_text(r, 0));
	return tests;
}

bool red_tests_are_silence(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
	    "SELECT 1 FROM (SELECT MIN(v.job_id IS NULL) AS is_silence FROM verdict v"
	    " WHERE" IS_BROKEN ") WHERE is_silence = 1",
	    V_INT(change_id), V_TEXT(accelerator));
}

static void read_tests(struct db *d, struct red_episode *e)
{
	e->tests = red_tests(d, e->first_bad_change, e->accelerator);
	e->n_tests = (size_t)db_int(d, 0, "SELECT COUNT(*) FROM verdict v WHERE" IS_BROKEN,
	    V_INT(e->first_bad_change), V_TEXT(e->accelerator));
	e->is_silence = red_tests_are_silence(d, e->first_bad_change, e->accelerator) &&
			(e->ended_ms || red_is_silence(d, e->accelerator));
}

static int get_run(struct store_query *q, struct db *d)
{
	struct get_red_episode *g = CONTAINER_OF(q, struct get_red_episode, q);

	g->episode = read_episode(d, g->id);
	if (!g->episode)
		return ERR_NOT_FOUND;
	read_tests(d, g->episode);
	if (db_status(d)) {
		red_episode_free(g->episode);
		g->episode = NULL;
	}
	return 0;
}

int store_get_red_episode(struct store *s, struct get_red_episode *q)
{
	q->episode = NULL;
	q->q.run = get_run;
	return store_query(s, &q->q);
}

void red_episode_free(struct red_episode *e)
{
	if (!e)
		return;
	free(e->accelerator);
	free(e->repository);
	free(e->ref);
	free(e->first_bad_sha);
	free(e->last_good_sha);
	free(e->issue_repository);
	free(e->ended_sha);
	strv_free(e->tests);
	free(e);
}

static int note_run(struct store_op *op, struct db *d)
{
	struct note_red_episode *o = CONTAINER_OF(op, struct note_red_episode, op);

	if (!db_exec(d,
		"UPDATE red_episode SET issue_number = COALESCE(?2, issue_number),"
		" issue_repository = COALESCE(?3, issue_repository),"
		" told_ms = COALESCE(?4, told_ms), reminded_ms = COALESCE(?5, reminded_ms),"
		" overdue_ms = COALESCE(?6, overdue_ms), closed_ms = COALESCE(?7, closed_ms)"
		" WHERE id = ?1",
		V_INT(o->id), V_INT_OR_NULL(o->issue_number), V_TEXT(o->issue_repository),
		V_INT_OR_NULL(o->told_ms), V_INT_OR_NULL(o->reminded_ms),
		V_INT_OR_NULL(o->overdue_ms), V_INT_OR_NULL(o->closed_ms)))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	if (o->notice)
		request_put_notice(d, o->notice, o->now_ms);
	db_tell(d, STORE_CHANGES);
	return 0;
}

int store_note_red_episode(struct store *s, struct note_red_episode *op)
{
	op->op.run = note_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
