#include "store/standings.h"

#include <string.h>

#include "base/alloc.h"
#include "store/branch_commits.h"
#include "store/days.h"
#include "store/red_episodes.h"
#include "store/run_note.h"
#include "store/run_suites.h"

enum {
	/* Pushes become known nearly in their order: the newest tested one is among so many. */
	NEWEST_LOOKED_AT = 16,
	PUSHES_LOOKED_AT = 200, /* where some are of other branches */
	FIGURE_DAYS = 30,
};

/* ---- the branch ---- */

static const char REPOSITORY[] = "upstream.repository", BRANCH[] = "upstream.branch";

static void put(struct db *d, const char *key, const char *value)
{
	db_exec(d,
	    "INSERT INTO setting (key, value) VALUES (?1, ?2)"
	    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
	    V_TEXT(key), V_TEXT(value));
}

void upstream_branch_put(struct db *d, const char *repository, const char *branch)
{
	if (!repository)
		return;
	put(d, REPOSITORY, repository);
	put(d, BRANCH, branch ? branch : "");
}

struct upstream_branch upstream_branch_read(struct db *d)
{
	char *repository =
	    db_text(d, "SELECT value FROM setting WHERE key = ?1", V_TEXT(REPOSITORY));
	char *branch = db_text(d, "SELECT value FROM setting WHERE key = ?1", V_TEXT(BRANCH));
	struct upstream_branch u = {.repository = repository_key(repository ? repository : "")};

	snprintf(u.name, sizeof(u.name), "%s", branch ? branch : "");
	free(repository);
	free(branch);
	return u;
}

/* ---- its newest runs there ---- */

#define PUSHES_OF_BRANCH                                                                           \
	" FROM (SELECT * FROM run WHERE accelerator = ?1 AND is_push = 1 AND change_id > ?6"       \
	"  ORDER BY change_id DESC LIMIT ?5) r"                                                    \
	" CROSS JOIN change c ON c.id = r.change_id LEFT JOIN branch_commit b"                     \
	" ON b.repository_key = ?2 AND b.ref = ?3 AND b.sha = c.head_sha"                          \
	" WHERE c.repository_key = ?2 AND c.ref IN (?3, 'refs/heads/' || ?3)"

static enum branch_result result_of(const char *outcome, bool has_red, bool has_red_tests)
{
	if (strcmp(outcome, RUN_GREEN) == 0)
		return has_red ? BRANCH_EXPLAINED : BRANCH_PASSED;
	if (strcmp(outcome, RUN_NOTHING) == 0)
		return BRANCH_NO_PASS;
	return has_red_tests ? BRANCH_RED : BRANCH_NO_REPORT;
}

/* By the branch's order; one whose place is not known is as new as its change. */
static void read_newest(
    struct db *d, const char *accelerator, const struct upstream_branch *u, struct standing *s)
{
	struct rows *r = db_rows(d,
	    "SELECT c.id, c.head_sha, COALESCE(b.at_ms, c.created_ms), COALESCE(b.position, -1),"
	    " r.ended_ms, r.outcome, r.n_fail + r.n_error + r.n_miss > 0, " RUN_HAS_RED_TESTS
		PUSHES_OF_BRANCH " AND NOT " RUN_IS_SILENT " LIMIT ?4",
	    V_TEXT(accelerator), V_TEXT(u->repository.text), V_TEXT(u->name),
	    V_INT(NEWEST_LOOKED_AT), V_INT(PUSHES_LOOKED_AT), V_INT(0));

	while (rows_next(r)) {
		if (s->sha && rows_int(r, 3) <= s->position)
			continue;
		free(s->sha);
		s->change_id = rows_int(r, 0);
		s->sha = rows_dup(r, 1);
		s->commit_ms = rows_int(r, 2);
		s->position = rows_int(r, 3);
		s->facts.tested_ms = rows_int(r, 4);
		s->facts.newest = result_of(rows_text(r, 5), rows_int(r, 6), rows_int(r, 7));
	}
}

/* No report is no test: it is told beside the newest one. */
static void read_silence(
    struct db *d, const char *accelerator, const struct upstream_branch *u, struct standing *s)
{
	struct rows *r = db_rows(d,
	    "SELECT c.head_sha, r.ended_ms, COALESCE(b.position, -1)" PUSHES_OF_BRANCH
	    " AND " RUN_IS_SILENT " LIMIT ?4",
	    V_TEXT(accelerator), V_TEXT(u->repository.text), V_TEXT(u->name),
	    V_INT(NEWEST_LOOKED_AT), V_INT(PUSHES_LOOKED_AT), V_INT(s->change_id));

	while (rows_next(r)) {
		bool is_older = rows_int(r, 2) >= 0 && rows_int(r, 2) < s->position;

		if (s->silent_sha || is_older)
			continue;
		s->silent_sha = rows_dup(r, 0);
		s->facts.no_report_ms = rows_int(r, 1);
	}
}

/* ---- the whole ---- */

static bool read_accelerator(struct db *d, const char *accelerator, struct accelerator_facts *f)
{
	struct rows *r = db_rows(d,
	    "SELECT level, unhealthy_since_ms IS NOT NULL, last_report_ms FROM accelerator"
	    " WHERE name = ?1",
	    V_TEXT(accelerator));
	bool is_found = rows_next(r);

	if (is_found) {
		f->level = (enum level)rows_int(r, 0);
		f->is_unhealthy = rows_int(r, 1);
		f->last_report_ms = rows_int(r, 2);
	}
	rows_end(r);
	return is_found;
}

static void read_figure(
    struct db *d, const char *accelerator, int64_t today, struct accelerator_facts *f)
{
	struct rows *r = db_rows(d,
	    "SELECT SUM(n_runs), SUM(n_green) FROM day WHERE accelerator = ?1 AND day > ?2"
	    " AND day <= ?3",
	    V_TEXT(accelerator), V_INT(today - FIGURE_DAYS), V_INT(today));

	if (rows_next(r)) {
		f->n_runs = rows_int(r, 0);
		f->n_green = rows_int(r, 1);
	}
	rows_end(r);
}

void standing_read(struct db *d, const char *accelerator, const struct upstream_branch *u,
    int64_t now_ms, struct standing *ret)
{
	struct accelerator_facts *f = &ret->facts;

	*ret = (struct standing){.facts.level = LEVEL_1, .position = -1};
	if (read_accelerator(d, accelerator, f)) {
		f->red_since_ms = red_since_ms(d, accelerator);
		f->is_red_in_silence = f->red_since_ms && red_is_silence(d, accelerator);
		read_newest(d, accelerator, u, ret);
		read_silence(d, accelerator, u, ret);
		read_figure(d, accelerator, day_of(now_ms), f);
	}
	ret->state = accelerator_state_of(f, now_ms);
}
