/* Episodes are decided anew from the newest runs whenever one of them changes: no result has to
 * come in order, and none is counted twice. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strv.h"
#include "store/branch_commits.h"
#include "store/red_episodes.h"
#include "store/run_note.h"
#include "store/run_suites.h"

enum { RUNS_MAX = 200 }; /* of the branch, newest first */

struct branch_run {
	int64_t change_id, ended_ms;
	int64_t position; /* on the branch; of one that is not known: of the change before it */
	bool is_red, is_green;
	char *sha;
};

struct branch_runs { /* newest first */
	struct branch_run at[RUNS_MAX];
	size_t n;
};

static void read_runs(struct db *d, const char *accelerator, const char *repository_key,
    const char *ref, struct branch_runs *l)
{
	struct rows *r = db_rows(d,
	    "SELECT r.change_id, r.ended_ms, COALESCE(b.position, -1), r.outcome, c.head_sha"
	    " FROM run r JOIN change c ON c.id = r.change_id LEFT JOIN branch_commit b"
	    " ON b.repository_key = c.repository_key AND b.ref = ?3 AND b.sha = c.head_sha"
	    " WHERE r.accelerator = ?1 AND r.is_push = 1 AND c.repository_key = ?2"
	    " AND c.ref IN (?3, 'refs/heads/' || ?3) ORDER BY r.change_id DESC LIMIT ?4",
	    V_TEXT(accelerator), V_TEXT(repository_key), V_TEXT(branch_name(ref)), V_INT(RUNS_MAX));

	while (rows_next(r) && l->n < RUNS_MAX)
		l->at[l->n++] = (struct branch_run){
		    .change_id = rows_int(r, 0),
		    .ended_ms = rows_int(r, 1),
		    .position = rows_int(r, 2),
		    .is_red = strcmp(rows_text(r, 3), RUN_RED) == 0,
		    .is_green = strcmp(rows_text(r, 3), RUN_GREEN) == 0,
		    .sha = rows_dup(r, 4),
		};
	rows_end(r);
}

static int newest_first(const void *x, const void *y)
{
	const struct branch_run *a = x, *b = y;

	if (a->position != b->position)
		return a->position < b->position ? 1 : -1;
	return (a->change_id < b->change_id) - (a->change_id > b->change_id);
}

/* The branch's order; a commit whose place nobody knows is where its change came. */
static void put_in_order(struct branch_runs *l)
{
	int64_t last = -1;

	for (size_t i = l->n; i-- > 0;) {
		if (l->at[i].position < 0)
			l->at[i].position = last;
		else
			last = l->at[i].position;
	}
	if (l->n)
		qsort(l->at, l->n, sizeof(l->at[0]), newest_first);
}

/* What the runs say: the red ones from the newest back to a green one. */
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

struct open_episode {
	int64_t id, first_bad_change;
	bool is_told;
};

static bool find_open(struct db *d, const char *accelerator, const char *repository_key,
    const char *ref, struct open_episode *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT id, first_bad_change, told_ms IS NOT NULL FROM red_episode"
	    " WHERE accelerator = ?1 AND repository_key = ?2 AND ref = ?3 AND ended_ms IS NULL",
	    V_TEXT(accelerator), V_TEXT(repository_key), V_TEXT(ref));
	bool is_found = rows_next(r);

	if (is_found)
		*ret = (struct open_episode){rows_int(r, 0), rows_int(r, 1), rows_int(r, 2)};
	rows_end(r);
	return is_found;
}

static void begin(struct db *d, const char *accelerator, const char *repository_key,
    const char *ref, const struct streak *s, int64_t now_ms)
{
	int64_t id = db_int(d, 0,
	    "INSERT INTO red_episode (accelerator, repository_key, ref, first_bad_change,"
	    " first_bad_ms, last_good_sha) VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
	    V_TEXT(accelerator), V_TEXT(repository_key), V_TEXT(ref),
	    V_INT(s->first_bad->change_id), V_INT(s->since_ms),
	    V_TEXT(s->last_good ? s->last_good->sha : NULL));

	log_event(LOG_WARN, "branch_red", LOG_S("accelerator", accelerator), LOG_S("ref", ref),
	    LOG_S("first_bad", s->first_bad->sha), LOG_I("episode", id));
	red_issue_wish(d, id, accelerator, now_ms);
}

/* A red result that came late moves the beginning back, a green one that did moves it on. Where
 * the runs that were looked at hold no green one the beginning may lie before them. */
static void go_on(struct db *d, const struct open_episode *open, const char *accelerator,
    const struct streak *s, bool is_whole, int64_t now_ms)
{
	if (s->last_good || is_whole)
		db_exec(d,
		    "UPDATE red_episode SET first_bad_change = ?2, first_bad_ms = ?3,"
		    " last_good_sha = ?4 WHERE id = ?1",
		    V_INT(open->id), V_INT(s->first_bad->change_id), V_INT(s->since_ms),
		    V_TEXT(s->last_good ? s->last_good->sha : NULL));
	if (!open->is_told)
		red_issue_wish(d, open->id, accelerator, now_ms);
}

/* The commit that is green again: the newest green one, unless it is older than what was red. Then the
 * red run itself is told otherwise now (its failures are explained, or it has none), and no test of what
 * came after passed. NULL: there is none. */
static const struct branch_run *green_again(
    const struct branch_runs *l, const struct open_episode *open, const struct streak *s)
{
	size_t i = 0;

	if (!s->newest_green)
		return NULL;
	while (i < l->n && l->at[i].change_id != open->first_bad_change)
		i++;
	return i == l->n || s->newest_green <= &l->at[i] ? s->newest_green : NULL;
}

static void end(struct db *d, const struct open_episode *open, const char *accelerator,
    const char *ref, const struct branch_run *green, int64_t now_ms)
{
	db_exec(d, "UPDATE red_episode SET ended_ms = ?2, ended_change = ?3 WHERE id = ?1",
	    V_INT(open->id), V_INT(now_ms), V_INT_OR_NULL(green ? green->change_id : 0));
	log_event(LOG_INFO, green ? "branch_green" : "branch_not_red",
	    LOG_S("accelerator", accelerator), LOG_S("ref", ref),
	    LOG_S("commit", green ? green->sha : ""), LOG_I("episode", open->id));
	red_issue_wish(d, open->id, accelerator, now_ms);
}

static void decide(struct db *d, const char *accelerator, const char *repository_key,
    const char *ref, int64_t now_ms)
{
	struct branch_runs *l = xcalloc(1, sizeof(*l));
	struct open_episode open = {0};
	struct streak s;

	read_runs(d, accelerator, repository_key, ref, l);
	put_in_order(l);
	s = find_streak(l);
	if (!find_open(d, accelerator, repository_key, ref, &open)) {
		if (s.first_bad)
			begin(d, accelerator, repository_key, ref, &s, now_ms);
	} else if (s.first_bad) {
		go_on(d, &open, accelerator, &s, l->n < RUNS_MAX, now_ms);
	} else {
		end(d, &open, accelerator, ref, green_again(l, &open, &s), now_ms);
	}
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i].sha);
	free(l);
}

void red_episode_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct rows *r =
	    db_rows(d, "SELECT repository_key, ref FROM change WHERE id = ?1 AND ref IS NOT NULL",
		V_INT(change_id));
	char *repository_key = NULL, *ref = NULL;

	if (rows_next(r)) {
		repository_key = rows_dup(r, 0);
		ref = xstrdup(branch_name(rows_text(r, 1)));
	}
	rows_end(r);
	if (repository_key)
		decide(d, accelerator, repository_key, ref, now_ms);
	free(repository_key);
	free(ref);
}

int64_t red_since_ms(struct db *d, const char *accelerator)
{
	return db_int(d, 0,
	    "SELECT first_bad_ms FROM red_episode WHERE accelerator = ?1 AND ended_ms IS NULL"
	    " ORDER BY first_bad_ms LIMIT 1",
	    V_TEXT(accelerator));
}

/* The first run of each open episode, and the newest of its branch: who has been silent for months has
 * let thousands pass. */
#define RED_RUN                                                                                    \
	"SELECT 1 FROM red_episode e CROSS JOIN run r INDEXED BY run_of_change"                    \
	" ON r.accelerator = e.accelerator AND r.change_id IN (SELECT e.first_bad_change"          \
	"  UNION ALL SELECT * FROM (SELECT n.change_id FROM run n"                                 \
	"  WHERE n.accelerator = e.accelerator AND n.is_push = 1"                                  \
	"  AND n.change_id > e.first_bad_change ORDER BY n.change_id DESC LIMIT ?2))"              \
	" CROSS JOIN change c ON c.id = r.change_id AND c.repository_key = e.repository_key"       \
	" AND c.ref IN (e.ref, 'refs/heads/' || e.ref)"                                            \
	" WHERE e.accelerator = ?1 AND e.ended_ms IS NULL AND r.outcome = 'red' AND "

bool red_is_silence(struct db *d, const char *accelerator)
{
	return !db_has(
		   d, RED_RUN RUN_HAS_RED_TESTS " LIMIT 1", V_TEXT(accelerator), V_INT(RUNS_MAX)) &&
	       db_has(d, RED_RUN "NOT " RUN_HAS_RED_TESTS " LIMIT 1", V_TEXT(accelerator),
		   V_INT(RUNS_MAX));
}

bool red_episodes_drop(struct db *d, int64_t before_ms, int limit)
{
	struct rows *r =
	    db_rows(d, "SELECT id FROM red_episode WHERE ended_ms < ?1 ORDER BY ended_ms LIMIT ?2",
		V_INT(before_ms), V_INT(limit));
	bool has_dropped = false;

	while (rows_next(r)) {
		db_exec(d, "DELETE FROM outbox WHERE key = 'red:' || ?1", V_INT(rows_int(r, 0)));
		/* "notice:ID:EVENT"; ';' follows ':' */
		db_exec(d,
		    "DELETE FROM outbox WHERE key > 'notice:' || ?1 || ':'"
		    " AND key < 'notice:' || ?1 || ';'",
		    V_INT(rows_int(r, 0)));
		db_exec(d, "DELETE FROM red_episode WHERE id = ?1", V_INT(rows_int(r, 0)));
		has_dropped = true;
	}
	return has_dropped;
}
