#include "store/platform_tests.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strv.h"
#include "model/accelerator.h"
#include "store/platform_jobs.h"

enum {
	ROWS_PER_ACCELERATOR_MAX = 100, /* a vendor that invents versions ends here */
	FILL_CHANGES_MAX = 200,         /* for each accelerator */
	RESTORE_CHANGES_MAX = 20,
	RESTORE_JOBS_MAX = 20000, /* among an accelerator's newest jobs */
};

/* By the key: nightlies of one system take each other's place, releases stay side by side. */
static const char *release_of(const struct platform_group *g)
{
	return platform_build_of(g->torch) == BUILD_STABLE ? g->torch : "";
}

struct known_row {
	bool is_there;
	int64_t change_id, red_since_ms;
};

static struct known_row find(struct db *d, const char *accelerator, const struct platform_group *g)
{
	struct known_row k = {0};
	struct rows *r = db_rows(d,
	    "SELECT change_id, red_since_ms FROM platform_test WHERE accelerator = ?1"
	    " AND release = ?2 AND os = ?3",
	    V_TEXT(accelerator), V_TEXT(release_of(g)), V_TEXT(g->os));

	if (rows_next(r))
		k = (struct known_row){true, rows_int(r, 0), rows_int(r, 1)};
	rows_end(r);
	return k;
}

static void drop_oldest(struct db *d, const char *accelerator)
{
	db_exec(d,
	    "DELETE FROM platform_test WHERE accelerator = ?1 AND (release, os) IN"
	    " (SELECT release, os FROM platform_test WHERE accelerator = ?1"
	    "  ORDER BY at_ms DESC, release, os LIMIT 1000 OFFSET ?2)",
	    V_TEXT(accelerator), V_INT(ROWS_PER_ACCELERATOR_MAX));
}

static bool is_red(const struct platform_group *g)
{
	return g->n_failed || g->n_missing;
}

static void put(struct db *d, const struct platform_jobs *p, const struct platform_group *g)
{
	struct known_row known = find(d, p->accelerator, g);
	int64_t red_since_ms = 0;

	if (known.is_there && known.change_id > p->change_id)
		return;
	if (is_red(g))
		red_since_ms = known.red_since_ms ? known.red_since_ms : g->at_ms;
	db_exec(d,
	    "INSERT INTO platform_test (accelerator, release, os, torch, change_id, head_sha,"
	    " job_id, at_ms, extension_version, n_passed, n_failed, n_missing, red_since_ms)"
	    " SELECT ?1, ?2, ?3, ?4, ?5, head_sha, ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM change"
	    " WHERE id = ?5"
	    " ON CONFLICT (accelerator, release, os) DO UPDATE SET torch = excluded.torch,"
	    " change_id = excluded.change_id, head_sha = excluded.head_sha,"
	    " job_id = excluded.job_id, at_ms = excluded.at_ms,"
	    " extension_version = excluded.extension_version, n_passed = excluded.n_passed,"
	    " n_failed = excluded.n_failed, n_missing = excluded.n_missing,"
	    " red_since_ms = excluded.red_since_ms",
	    V_TEXT(p->accelerator), V_TEXT(release_of(g)), V_TEXT(g->os), V_TEXT(g->torch),
	    V_INT(p->change_id), V_INT(g->job_id), V_INT(g->at_ms), V_TEXT(g->extension_version),
	    V_INT(g->n_passed), V_INT(g->n_failed), V_INT(g->n_missing),
	    V_INT_OR_NULL(red_since_ms));
	if (!known.is_there)
		drop_oldest(d, p->accelerator);
}

static bool is_at_work(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
		   "SELECT 1 FROM job WHERE change_id = ?1 AND accelerator = ?2"
		   " AND is_current = 1 AND status = 'in_progress' LIMIT 1",
		   V_INT(change_id), V_TEXT(accelerator)) ||
	       db_has(d,
		   "SELECT 1 FROM dispatch WHERE change_id = ?1 AND accelerator = ?2"
		   " AND is_current = 1 AND state IN ('queued', 'sent', 'acknowledged', 'running')"
		   " LIMIT 1",
		   V_INT(change_id), V_TEXT(accelerator));
}

/* keys: release and system, in turn. */
static bool lacks_any(struct db *d, const char *accelerator, char **keys)
{
	bool is_there = true;

	for (; *keys && is_there; keys += 2)
		is_there = db_has(d,
		    "SELECT 1 FROM platform_test WHERE accelerator = ?1 AND release = ?2"
		    " AND os = ?3",
		    V_TEXT(accelerator), V_TEXT(keys[0]), V_TEXT(keys[1]));
	return !is_there;
}

/* What an earlier change said of it counts again: its row had been overwritten. */
static void restore(struct db *d, const char *accelerator, int64_t change_id, char **keys)
{
	int64_t ids[RESTORE_CHANGES_MAX];
	size_t n = 0;
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT j.change_id FROM (SELECT change_id, is_current, environment FROM job"
	    "  INDEXED BY job_of_accelerator WHERE accelerator = ?1 AND id > 0"
	    "  ORDER BY id DESC LIMIT ?4) j JOIN change c ON c.id = j.change_id"
	    " WHERE j.change_id < ?2 AND j.is_current = 1"
	    " AND j.environment IS NOT NULL AND c.kind IN ('push', 'nightly')"
	    " ORDER BY j.change_id DESC LIMIT ?3",
	    V_TEXT(accelerator), V_INT(change_id), V_INT(RESTORE_CHANGES_MAX),
	    V_INT(RESTORE_JOBS_MAX));

	while (rows_next(r))
		ids[n++] = rows_int(r, 0);
	for (size_t i = 0; i < n && lacks_any(d, accelerator, keys); i++)
		platform_tests_note(d, ids[i], accelerator);
}

/* What this change said before and says no more: a later attempt reports another version. */
static void drop_withdrawn(struct db *d, const struct platform_jobs *p)
{
	struct rows *r = db_rows(d,
	    "SELECT release, os FROM platform_test WHERE accelerator = ?1 AND change_id = ?2",
	    V_TEXT(p->accelerator), V_INT(p->change_id));
	char **gone = strv_copy(NULL);

	while (rows_next(r)) {
		bool is_there = false;

		for (size_t i = 0; i < p->n_groups; i++)
			is_there |= strcmp(release_of(&p->groups[i]), rows_text(r, 0)) == 0 &&
				    strcmp(p->groups[i].os, rows_text(r, 1)) == 0;
		if (is_there)
			continue;
		strv_add(&gone, rows_text(r, 0));
		strv_add(&gone, rows_text(r, 1));
	}
	for (char **key = gone; *key; key += 2)
		db_exec(d,
		    "DELETE FROM platform_test WHERE accelerator = ?1 AND release = ?2 AND os = ?3",
		    V_TEXT(p->accelerator), V_TEXT(key[0]), V_TEXT(key[1]));
	if (*gone)
		restore(d, p->accelerator, p->change_id, gone);
	strv_free(gone);
}

/* NULL where nothing is to be noted. free(). */
static char *must_pass_of(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_text(d,
	    "SELECT a.must_pass FROM change c JOIN accelerator a ON a.name = ?2"
	    " WHERE c.id = ?1 AND c.kind IN ('push', 'nightly') AND a.level > ?3",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(LEVEL_1));
}

void platform_tests_note(struct db *d, int64_t change_id, const char *accelerator)
{
	char *must_pass = must_pass_of(d, change_id, accelerator);
	struct platform_jobs p;
	bool is_going;

	if (!must_pass)
		return;
	is_going = is_at_work(d, change_id, accelerator);
	platform_jobs_read(d, change_id, accelerator, must_pass, &p);
	/* red ones last: of two nightlies under one key the red one shows */
	for (size_t i = 0; i < p.n_groups && !is_going; i++)
		if (!is_red(&p.groups[i]))
			put(d, &p, &p.groups[i]);
	for (size_t i = 0; i < p.n_groups; i++)
		if (is_going ? p.groups[i].n_failed > 0 : is_red(&p.groups[i]))
			put(d, &p, &p.groups[i]);
	if (!is_going)
		drop_withdrawn(d, &p);
	platform_jobs_release(&p);
	free(must_pass);
}

void platform_tests_changed(struct db *d, const char *accelerator)
{
	int64_t ids[ROWS_PER_ACCELERATOR_MAX];
	size_t n = 0;
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT change_id FROM platform_test WHERE accelerator = ?1 AND change_id > 0"
	    " LIMIT ?2",
	    V_TEXT(accelerator), V_INT(ROWS_PER_ACCELERATOR_MAX));

	while (rows_next(r))
		ids[n++] = rows_int(r, 0);
	for (size_t i = 0; i < n; i++)
		platform_tests_note(d, ids[i], accelerator);
}

void platform_tests_forget(struct db *d, int64_t change_id)
{
	db_exec(d, "UPDATE platform_test SET change_id = 0, job_id = NULL WHERE change_id = ?1",
	    V_INT(change_id));
}

/* ---- once ---- */

static const char FILLED[] = "platform_tests.filled";

/* Oldest first, so that the newest stays and red is counted from its first. */
static void fill_one(struct db *d, const char *accelerator)
{
	int64_t ids[FILL_CHANGES_MAX];
	size_t n = 0;
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT j.change_id FROM job j INDEXED BY job_of_accelerator"
	    " JOIN change c ON c.id = j.change_id WHERE j.accelerator = ?1 AND j.id > 0"
	    " AND j.is_current = 1 AND j.environment IS NOT NULL"
	    " AND c.kind IN ('push', 'nightly') ORDER BY j.change_id DESC LIMIT ?2",
	    V_TEXT(accelerator), V_INT(FILL_CHANGES_MAX));

	while (rows_next(r))
		ids[n++] = rows_int(r, 0);
	while (n > 0)
		platform_tests_note(d, ids[--n], accelerator);
}

void platform_tests_fill(struct db *d)
{
	char **names = strv_copy(NULL);
	struct rows *r;

	if (!db_has(d, "SELECT 1 FROM setting WHERE key = ?1", V_TEXT(FILLED))) {
		r = db_rows(d, "SELECT name FROM accelerator WHERE is_gone = 0 ORDER BY name");
		while (rows_next(r))
			strv_add(&names, rows_text(r, 0));
		for (char **name = names; *name; name++)
			fill_one(d, *name);
		db_exec(d, "INSERT INTO setting (key, value) VALUES (?1, '1')", V_TEXT(FILLED));
	}
	strv_free(names);
}
