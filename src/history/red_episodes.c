#include "history/red_episodes.h"

#include "db/record_rows.h"
#include "history/run_note.h"
#include "store/branch_commits.h"
#include "store/requests.h"

/* Each change of a run decides the episode again from the newest runs, so results may come in any order, and none counts
 * twice. */

enum { RUNS_MAX = 200 }; /* of the branch, newest first */

#define BRANCH_RUN_RECORD(F, S)                                                                                        \
	F(S, INT, change_id, NULL, "r.change_id", "")                                                                  \
	F(S, TIME, ended_ms, NULL, "r.ended_ms", "")                                                                   \
	F(S, COUNT, position, NULL, "b.position",                                                                      \
	    "Of a commit that is not on the branch: that of the change before it.")                                    \
	F(S, BOOL, is_red, NULL, "r.outcome = '" RUN_RED "'", "")                                                      \
	F(S, BOOL, is_green, NULL, "r.outcome = '" RUN_GREEN "'", "")                                                  \
	F(S, TEXT, sha, NULL, "c.head_sha", "")
RECORD_LOCAL(branch_run, BRANCH_RUN_RECORD)

struct branch_runs { /* newest first */
	struct branch_run *at;
	size_t n;
};

static int newest_first(const void *x, const void *y)
{
	const struct branch_run *a = x, *b = y;

	if (a->position != b->position)
		return a->position < b->position ? 1 : -1;
	return (a->change_id < b->change_id) - (a->change_id > b->change_id);
}

/* Reads the runs in the order of the branch. */
static void read_episode_runs(
    const struct view *d, const char *accelerator, const char *repository_key, const char *ref, struct branch_runs *l)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(BRANCH_RUN_RECORD,
		"FROM run r JOIN change c ON c.id = r.change_id LEFT JOIN branch_commit b"
		" ON b.repository_key = c.repository_key AND b.ref = ?3 AND b.sha = c.head_sha"
		" WHERE r.accelerator = ?1 AND r.is_push = 1 AND c.repository_key = ?2"
		" AND c.ref IN (?3, 'refs/heads/' || ?3) ORDER BY r.change_id DESC LIMIT ?4"),
	    V_TEXT(accelerator), V_TEXT(repository_key), V_TEXT(branch_name(ref)), V_INT(RUNS_MAX));
	int64_t last = -1;

	RECORDS_READ(r, branch_run, l->at, l->n);
	for (size_t i = l->n; i-- > 0;) {
		if (l->at[i].position < 0)
			l->at[i].position = last;
		else
			last = l->at[i].position;
	}
	if (l->n)
		qsort(l->at, l->n, sizeof(l->at[0]), newest_first);
}

/* The red runs after the newest green one. */
struct streak {
	const struct branch_run *first_bad, *last_good, *newest_green; /* NULL: none */
	int64_t since_ms;
};

static struct streak find_streak(const struct branch_runs *l)
{
	struct streak s = {.first_bad = NULL};

	for (size_t i = 0; i < l->n && !s.last_good; i++) {
		const struct branch_run *r = &l->at[i];

		if (r->is_green)
			s.last_good = r;
		if (!r->is_red)
			continue;
		s.first_bad = r;
		s.since_ms = !s.since_ms || r->ended_ms < s.since_ms ? r->ended_ms : s.since_ms;
	}
	if (!s.first_bad)
		s.newest_green = s.last_good;
	return s;
}

#define PUSHED_BRANCH_RECORD(F, S)                                                                                     \
	F(S, TEXT, repository_key, NULL, "c.repository_key", "")                                                       \
	F(S, TEXT, ref, NULL, "c.ref", "The branch.")                                                                  \
	F(S, BOOL, is_green, NULL, "r.outcome = '" RUN_GREEN "'", "The run.")                                          \
	F(S, ID, episode, NULL, "e.id", "The open one; 0: none.")                                                      \
	F(S, ID, first_bad_change, NULL, "e.first_bad_change", "")                                                     \
	F(S, BOOL, is_notified, NULL, "e.told_ms IS NOT NULL", "")
RECORD_LOCAL(pushed_branch, PUSHED_BRANCH_RECORD)

/* The commit that is green again: the newest green one, unless it is older than the first bad one. In that case the red run
 * itself was corrected (its failures are explained, or it has none), and no later run passed. NULL: there is none. */
static const struct branch_run *green_again(
    const struct branch_runs *l, const struct pushed_branch *b, const struct streak *s)
{
	size_t i = 0;

	if (!s->newest_green)
		return NULL;
	while (i < l->n && l->at[i].change_id != b->first_bad_change)
		i++;
	return i == l->n || s->newest_green <= &l->at[i] ? s->newest_green : NULL;
}

bool red_episode_enter(struct txn *d, int64_t id, enum red_episode_state to, int64_t at_ms)
{
	enum red_episode_state from = (enum red_episode_state)db_int(d, N_RED_EPISODE_STATES,
	    "SELECT CASE WHEN closed_ms IS NOT NULL THEN ?2 WHEN ended_ms IS NOT NULL THEN ?3 ELSE ?4 END"
	    " FROM red_episode WHERE id = ?1",
	    V_INT(id), V_INT(RED_EPISODE_IS_CLOSED), V_INT(RED_EPISODE_IS_ENDED), V_INT(RED_EPISODE_IS_OPEN));

	if (from == N_RED_EPISODE_STATES || from == to || !red_episode_may_enter(from, to))
		return false;
	db_exec(d,
	    "UPDATE red_episode SET ended_ms = CASE WHEN ?3 <> 0 THEN ended_ms ELSE ?2 END,"
	    " closed_ms = CASE WHEN ?3 <> 0 THEN ?2 END WHERE id = ?1",
	    V_INT(id), V_INT(at_ms), V_INT(to == RED_EPISODE_IS_CLOSED));
	return true;
}

static void decide_episode(struct txn *d, const char *accelerator, const struct pushed_branch *b, int64_t now_ms)
{
	struct branch_runs l = {0};
	struct streak s;
	const char *last_good, *ref = branch_name(b->ref);
	int64_t id = b->episode;

	read_episode_runs(d->view, accelerator, b->repository_key, ref, &l);
	s = find_streak(&l);
	last_good = s.last_good ? s.last_good->sha : NULL;
	if (!id && s.first_bad) {
		id = db_exec_int(d, 0,
		    "INSERT INTO red_episode (accelerator, repository_key, ref, first_bad_change,"
		    " first_bad_ms, last_good_sha) VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
		    V_TEXT(accelerator), V_TEXT(b->repository_key), V_TEXT(ref), V_INT(s.first_bad->change_id),
		    V_INT(s.since_ms), V_TEXT(last_good));
		log_event(LOG_WARN, "branch_red", LOG_S("accelerator", accelerator), LOG_S("ref", ref),
		    LOG_S("first_bad", s.first_bad->sha), LOG_I("episode", id));
		red_issue_request(d, id, accelerator, now_ms);
	} else if (s.first_bad) {
		/* A late red result moves the start back, a late green one moves it forward. If none of the runs that were
		 * read is green, the start may be before them and stays. */
		if (s.last_good || l.n < RUNS_MAX)
			db_exec(d,
			    "UPDATE red_episode SET first_bad_change = ?2, first_bad_ms = ?3,"
			    " last_good_sha = ?4 WHERE id = ?1",
			    V_INT(id), V_INT(s.first_bad->change_id), V_INT(s.since_ms), V_TEXT(last_good));
		if (!b->is_notified)
			red_issue_request(d, id, accelerator, now_ms);
	} else if (id) {
		const struct branch_run *green = green_again(&l, b, &s);

		red_episode_enter(d, id, RED_EPISODE_IS_ENDED, now_ms);
		db_exec(d, "UPDATE red_episode SET ended_change = ?2 WHERE id = ?1", V_INT(id),
		    V_INT_OR_NULL(green ? green->change_id : 0));
		log_event(LOG_INFO, green ? "branch_green" : "branch_not_red", LOG_S("accelerator", accelerator),
		    LOG_S("ref", ref), LOG_S("commit", green ? green->sha : ""), LOG_I("episode", id));
		red_issue_request(d, id, accelerator, now_ms);
	}
	RECORDS_RELEASE(branch_run, l.at, l.n);
}

void red_episode_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct pushed_branch b;

	if (!RECORD_READ_FIRST(d, pushed_branch, PUSHED_BRANCH_RECORD, &b,
		"FROM change c JOIN run r ON r.change_id = c.id AND r.accelerator = ?2 LEFT JOIN red_episode e"
		" ON e.accelerator = ?2 AND e.repository_key = c.repository_key"
		" AND c.ref IN (e.ref, 'refs/heads/' || e.ref) AND e.ended_ms IS NULL"
		" WHERE c.id = ?1 AND c.ref IS NOT NULL",
		V_INT(change_id), V_TEXT(accelerator)))
		return;
	if (b.episode || !b.is_green) /* a green run begins none */
		decide_episode(d, accelerator, &b, now_ms);
	record_release(&pushed_branch_record, &b);
}

int64_t red_since_ms(const struct view *d, const char *accelerator)
{
	return db_int(d, 0,
	    "SELECT first_bad_ms FROM red_episode INDEXED BY red_episode_open WHERE accelerator = ?1"
	    " AND ended_ms IS NULL ORDER BY first_bad_ms LIMIT 1",
	    V_TEXT(accelerator));
}

/* The first run of each open episode, and only the newest runs of its branch, because an accelerator that has not reported
 * for months may have thousands. */
#define RED_RUN                                                                                                        \
	"SELECT 1 FROM red_episode e INDEXED BY red_episode_open CROSS JOIN run r INDEXED BY run_of_change"            \
	" ON r.accelerator = e.accelerator AND r.change_id IN (SELECT e.first_bad_change"                              \
	"  UNION ALL SELECT * FROM (SELECT n.change_id FROM run n"                                                     \
	"  WHERE n.accelerator = e.accelerator AND n.is_push = 1"                                                      \
	"  AND n.change_id > e.first_bad_change ORDER BY n.change_id DESC LIMIT ?2) newest)"                           \
	" CROSS JOIN change c ON c.id = r.change_id AND c.repository_key = e.repository_key"                           \
	" AND c.ref IN (e.ref, 'refs/heads/' || e.ref)"                                                                \
	" WHERE e.accelerator = ?1 AND e.ended_ms IS NULL AND r.outcome = 'red' AND "

bool red_is_silence(const struct view *d, const char *accelerator)
{
	struct rows *r = db_rows(d, RED_RUN RUN_HAS_RED_TESTS " LIMIT 1", V_TEXT(accelerator), V_INT(RUNS_MAX));
	bool has_red_tests = rows_next(r);

	rows_end(r);
	return !has_red_tests && !rows_are_awaited(r) &&
	       db_has(d, RED_RUN "NOT " RUN_HAS_RED_TESTS " LIMIT 1", V_TEXT(accelerator), V_INT(RUNS_MAX));
}

bool red_episodes_drop(struct txn *d, int64_t before_ms, int limit)
{
	size_t n;
	int64_t *ids =
	    rows_key_numbers(db_rows(d, "SELECT id FROM red_episode WHERE ended_ms < ?1 ORDER BY ended_ms LIMIT ?2",
				 V_INT(before_ms), V_INT(limit)),
		&n);

	for (size_t i = 0; i < n; i++) {
		db_exec(d, "DELETE FROM outbox WHERE key = 'red:' || ?1", V_INT(ids[i]));
		/* "notice:ID:EVENT"; ';' follows ':' */
		db_exec(d, "DELETE FROM outbox WHERE key > 'notice:' || ?1 || ':' AND key < 'notice:' || ?1 || ';'",
		    V_INT(ids[i]));
		db_exec(d, "DELETE FROM red_episode WHERE id = ?1", V_INT(ids[i]));
	}
	free(ids);
	return n > 0;
}

/* ---- operations and queries ---- */

RECORD_DEFINE(red_episode, RED_EPISODE_RECORD);

/* On a branch, FLAKY and KNOWN failures do not count (history/run_note.c). */
#define IS_BROKEN " v.change_id = ?1 AND v.accelerator = ?2 AND v.attribution IN ('NEW', 'BASE', 'UNCLASSIFIED')"

char **red_tests(const struct view *d, int64_t change_id, const char *accelerator)
{
	return rows_keys(db_rows(d,
	    "SELECT t.suite || '/' || t.name || CASE t.dtype WHEN '' THEN '' ELSE ' (' || t.dtype || ')' END"
	    " FROM verdict v JOIN test t ON t.id = v.test_id WHERE" IS_BROKEN " ORDER BY 1 LIMIT ?3",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(RED_TESTS_MAX)));
}

bool red_tests_are_silence(const struct view *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
	    "SELECT 1 FROM (SELECT COUNT(*) AS n, COUNT(v.job_id) AS n_with_job FROM verdict v WHERE" IS_BROKEN
	    ") red WHERE n > 0 AND n_with_job = 0",
	    V_INT(change_id), V_TEXT(accelerator));
}

static int get_red_episode_run(struct store_query *q, const struct view *d)
{
	struct get_red_episode *g = CONTAINER_OF(q, struct get_red_episode, q);
	struct red_episode e = {0};

	g->episode = NULL;
	if (!record_read_first(db_rows(d,
				   RECORD_QUERY(RED_EPISODE_RECORD,
				       "FROM red_episode e LEFT JOIN change c ON c.id = e.first_bad_change"
				       " LEFT JOIN change g ON g.id = e.ended_change WHERE e.id = ?1"),
				   V_INT(g->id)),
		&red_episode_record, &e))
		return ERR_NOT_FOUND;
	e.tests = red_tests(d, e.first_bad_change, e.accelerator);
	e.n_tests = (size_t)db_int(
	    d, 0, "SELECT COUNT(*) FROM verdict v WHERE" IS_BROKEN, V_INT(e.first_bad_change), V_TEXT(e.accelerator));
	e.is_silence = red_tests_are_silence(d, e.first_bad_change, e.accelerator) &&
		       (e.ended_ms || red_is_silence(d, e.accelerator));
	g->episode = xmemdup(&e, sizeof(e));
	if (db_status(d)) {
		red_episode_free(g->episode);
		g->episode = NULL;
	}
	return 0;
}
STORE_QUERY(get_red_episode)

void red_episode_free(struct red_episode *e)
{
	if (!e)
		return;
	record_release(&red_episode_record, e);
	strv_free(e->tests);
	free(e);
}

static int note_red_episode_run(struct store_op *op, struct txn *d)
{
	struct note_red_episode *o = CONTAINER_OF(op, struct note_red_episode, op);

	if (!db_exec_count(d,
		"UPDATE red_episode SET issue_number = COALESCE(?2, issue_number),"
		" issue_repository = COALESCE(?3, issue_repository), told_ms = COALESCE(?4, told_ms),"
		" reminded_ms = COALESCE(?5, reminded_ms),"
		" overdue_ms = COALESCE(?6, overdue_ms) WHERE id = ?1",
		V_INT(o->id), V_INT_OR_NULL(o->issue_number), V_TEXT(o->issue_repository),
		V_INT_OR_NULL(o->notified_ms), V_INT_OR_NULL(o->reminded_ms), V_INT_OR_NULL(o->overdue_ms)))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	if (o->closed_ms)
		red_episode_enter(d, o->id, RED_EPISODE_IS_CLOSED, o->closed_ms);
	if (o->notice)
		request_put_notice(d, o->notice, o->now_ms);
	db_notify(d, STORE_CHANGES);
	return 0;
}
STORE_OPERATION(note_red_episode)
