#include "history/run_note.h"

#include "db/cell_sets.h"
#include "db/record_rows.h"
#include "db/settings.h"
#include "model/accelerator.h"
#include "model/states.h"
#include "store/dispatches.h"

/* ---- the versions and systems that jobs report ---- */

/* JOBS_MAX: the newest, so that a vendor that reports a thousand shards does not block the writer. */
enum { JOBS_MAX = 200, PLATFORM_GROUPS_MAX = 16, TORCH_MAX_BYTES = 64, TEXT_MAX_BYTES = 100 };

struct platform_job {
	int64_t id, at_ms;
	char *torch, *os, *extension_version; /* NULL: not reported */
};

/* A version of PyTorch on a system that the jobs of one change report. */
struct platform_group {
	const char *torch, *os;        /* of a job in `jobs`; os "": not reported */
	int64_t job_id, at_ms;         /* the newest of its jobs */
	const char *extension_version; /* or NULL */
	int64_t n_passed, n_failed, n_missing;
};

/* The completed current jobs of a change on an accelerator, grouped. */
struct platform_jobs {
	int64_t change_id;
	const char *accelerator; /* borrowed */
	struct platform_job *jobs;
	size_t n_jobs;
	struct platform_group groups[PLATFORM_GROUPS_MAX];
	size_t n_groups;
};

static char *text_of(const json_t *obj, const char *key, size_t max_bytes)
{
	const char *s = json_get_str(obj, key);

	return s && *s ? xstrndup(s, utf8_cut(s, strlen(s), max_bytes)) : NULL;
}

#define REPORTED_JOB_RECORD(F, S)                                                                                      \
	F(S, INT, id, NULL, "id", "")                                                                                  \
	F(S, TIME, completed_ms, NULL, "completed_ms", "")                                                             \
	F(S, BORROWED, environment, NULL, "environment", "")
RECORD_LOCAL(reported_job, REPORTED_JOB_RECORD)

static void read_platform_jobs(const struct view *d, struct platform_jobs *p)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(REPORTED_JOB_RECORD,
		"FROM job WHERE change_id = ?1 AND accelerator = ?2 AND is_current = 1"
		" AND status = 'completed' AND digest IS NOT NULL ORDER BY id DESC LIMIT ?3"),
	    V_INT(p->change_id), V_TEXT(p->accelerator), V_INT(JOBS_MAX));
	struct reported_job of;

	while (rows_next(r)) {
		struct platform_job *job = ARRAY_PUSH(p->jobs, p->n_jobs);
		json_t *environment = NULL;

		record_read(r, &reported_job_record, &of);
		*job = (struct platform_job){.id = of.id, .at_ms = of.completed_ms};
		if (!*of.environment || json_parse(of.environment, strlen(of.environment), &environment, NULL))
			continue;
		job->torch = text_of(environment, "torch", TORCH_MAX_BYTES);
		job->os = text_of(environment, "os", TEXT_MAX_BYTES);
		job->extension_version = text_of(json_object_get(environment, "extension"), "version", TEXT_MAX_BYTES);
		json_decref(environment);
	}
}

static bool is_in(const struct platform_job *job, const struct platform_group *g)
{
	return (!job->torch || str_eq(job->torch, g->torch)) && (!job->os || !*g->os || str_eq(job->os, g->os));
}

static void add_groups(struct platform_jobs *p, bool with_os)
{
	for (size_t i = 0; i < p->n_jobs && p->n_groups < PLATFORM_GROUPS_MAX; i++) {
		const struct platform_job *job = &p->jobs[i];
		bool is_known = !job->torch || (job->os != NULL) != with_os;

		for (size_t k = 0; k < p->n_groups && !is_known; k++)
			is_known =
			    str_eq(p->groups[k].torch, job->torch) && (!job->os || str_eq(p->groups[k].os, job->os));
		if (!is_known)
			p->groups[p->n_groups++] =
			    (struct platform_group){.torch = job->torch, .os = job->os ? job->os : ""};
	}
}

/* ---- the results of the must-pass tests ---- */

enum outcome { IS_NOT_REPORTED, HAS_PASSED, IS_MISSING, HAS_FAILED }; /* the later one wins */

/* One cell of a must-pass test: there is one for each dtype. */
#define MUST_PASS_CELL_RECORD(F, S)                                                                                    \
	F(S, INT, test_id, NULL, "v.test_id", "")                                                                      \
	F(S, ID, job_id, NULL, "v.job_id", "")                                                                         \
	F(S, TEST_STATUS, status, NULL, "v.status", "")
struct must_pass_cell {
	size_t name; /* which of must_pass */
	RECORD_MEMBERS(MUST_PASS_CELL_RECORD)
};
RECORD_DEFINE(must_pass_cell, MUST_PASS_CELL_RECORD);

struct must_pass_cells {
	struct must_pass_cell *at; /* by test_id */
	size_t n, n_names;
};

/* 0: no job has it. */
static int64_t job_of_cell(
    const struct view *d, const struct platform_jobs *p, const struct cell_set *cells, const struct cell *c)
{
	return c->is_row ? db_int(d, 0,
			       "SELECT job_id FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND test_id = ?3",
			       V_INT(p->change_id), V_TEXT(p->accelerator), V_INT(c->test_id))
			 : cells->parts[c->part].job_id;
}

/* "a/b/c" may be b/c of suite a, or c of suite a/b. */
static void add_must_pass_cells(const struct view *d, const struct platform_jobs *p, const struct cell_set *cells,
    struct must_pass_cells *m, const char *name)
{
	char *suite = xstrdup(name);

	for (char *slash = suite; (slash = strchr(slash, '/')); *slash++ = '/') {
		struct rows *r;

		*slash = '\0';
		r = db_rows(d, "SELECT id FROM test WHERE suite = ?1 AND name = ?2", V_TEXT(suite), V_TEXT(slash + 1));
		while (rows_next(r)) {
			const struct cell *c = cell_set_find(cells, rows_key_number(r));

			if (c)
				*ARRAY_PUSH(m->at, m->n) = (struct must_pass_cell){.name = m->n_names,
				    .test_id = c->test_id,
				    .job_id = job_of_cell(d, p, cells, c),
				    .status = (enum test_status)c->status};
		}
	}
	free(suite);
	m->n_names++;
}

static int compare_tests(const void *x, const void *y)
{
	const struct must_pass_cell *a = x, *b = y;

	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

static void note_outcome(enum outcome *outcomes, const struct must_pass_cell *w, enum test_status status)
{
	enum outcome o = status == TEST_PASS                           ? HAS_PASSED
			 : status == TEST_FAIL || status == TEST_ERROR ? HAS_FAILED
								       : IS_MISSING;

	outcomes[w->name] = o > outcomes[w->name] ? o : outcomes[w->name];
}

/* A cell combines all jobs. If a change was tested with several versions, the results of the group's jobs count instead. A
 * SKIP of a cell stays, because the registry may list the test in tests.skip. */
static void add_results(const struct view *d, int64_t job_id, const struct must_pass_cells *m, enum outcome *outcomes)
{
	struct rows *r =
	    db_rows(d, RECORD_QUERY(MUST_PASS_CELL_RECORD, "FROM job_test v WHERE v.job_id = ?1"), V_INT(job_id));
	struct must_pass_cell of;

	while (rows_next(r)) {
		const struct must_pass_cell *w;

		record_read(r, &must_pass_cell_record, &of);
		w = m->n ? bsearch(&of, m->at, m->n, sizeof(*m->at), compare_tests) : NULL;
		if (w)
			note_outcome(outcomes, w, w->status == TEST_SKIP ? TEST_SKIP : of.status);
	}
}

static void judge_platform_job(
    const struct view *d, const struct platform_jobs *p, const struct must_pass_cells *m, struct platform_group *g)
{
	enum outcome *outcomes = xcalloc(m->n_names + 1, sizeof(*outcomes));

	for (size_t i = 0; i < m->n; i++) {
		/* a cell without a job, or of a cancelled one, counts for all groups */
		bool counts = true;

		for (size_t k = 0; p->n_groups > 1 && k < p->n_jobs; k++)
			if (p->jobs[k].id == m->at[i].job_id)
				counts = is_in(&p->jobs[k], g);
		if (counts)
			note_outcome(outcomes, &m->at[i], m->at[i].status);
	}
	for (size_t i = 0; p->n_groups > 1 && i < p->n_jobs; i++)
		if (is_in(&p->jobs[i], g))
			add_results(d, p->jobs[i].id, m, outcomes);
	for (size_t i = 0; i < m->n_names; i++) {
		g->n_passed += outcomes[i] == HAS_PASSED;
		g->n_failed += outcomes[i] == HAS_FAILED;
		g->n_missing += outcomes[i] == IS_MISSING || outcomes[i] == IS_NOT_REPORTED;
	}
	free(outcomes);
}

/* must_pass: a JSON array of "SUITE/TEST". */
static void platform_jobs_read(const struct view *d, const char *must_pass, struct platform_jobs *p)
{
	struct must_pass_cells m = {0};
	json_t *names = NULL, *name;
	struct cell_sets cells;
	size_t i;

	read_platform_jobs(d, p);
	add_groups(p, true);
	add_groups(p, false);
	if (!p->n_groups)
		return;
	if (json_parse(must_pass, strlen(must_pass), &names, NULL) == 0 && json_array_size(names) > 0) {
		/* all cells at once: a look at one reads the list of each job, too */
		cell_sets_read(d, p->change_id, p->accelerator, &cells);
		json_array_foreach(names, i, name)
		{
			if (json_is_string(name))
				add_must_pass_cells(d, p, cells.n ? &cells.at[0] : &(struct cell_set){.n = 0}, &m,
				    json_string_value(name));
		}
		cell_sets_release(&cells);
	}
	json_decref(names);
	if (m.n)
		qsort(m.at, m.n, sizeof(*m.at), compare_tests);
	for (struct platform_group *g = p->groups; g < p->groups + p->n_groups; g++) {
		/* the newest job that names a version describes the group */
		for (i = 0; i < p->n_jobs; i++) {
			const struct platform_job *job = &p->jobs[i];

			if (!job->torch || !is_in(job, g) || (g->job_id && job->at_ms <= g->at_ms))
				continue;
			g->job_id = job->id;
			g->at_ms = job->at_ms;
			g->extension_version = job->extension_version;
		}
		judge_platform_job(d, p, &m, g);
	}
	free(m.at);
}

/* ---- the versions on record ---- */

enum {
	ROWS_PER_ACCELERATOR_MAX = 100, /* for vendors that always report new versions */
	FILL_CHANGES_MAX = 200,         /* for each accelerator */
	RESTORE_CHANGES_MAX = 20,
	RESTORE_JOBS_MAX = 20000, /* among an accelerator's newest jobs */
};

/* The key of a row: each release has a row, and nightlies of one system share one. */
static const char *release_of(const struct platform_group *g)
{
	return platform_build_of(g->torch) == BUILD_STABLE ? g->torch : "";
}

static bool is_red(const struct platform_group *g) { return g->n_failed || g->n_missing; }

/* The row of a later change stays. A row that is red already keeps the time since when. */
static void put_platform_test(struct txn *d, const struct platform_jobs *p, const struct platform_group *g)
{
	db_exec(d,
	    "INSERT INTO platform_test (accelerator, release, os, torch, change_id, head_sha,"
	    " job_id, at_ms, extension_version, n_passed, n_failed, n_missing, red_since_ms)"
	    " SELECT ?1, ?2, ?3, ?4, ?5, head_sha, ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM change WHERE id = ?5"
	    " ON CONFLICT (accelerator, release, os) DO UPDATE SET torch = excluded.torch,"
	    " change_id = excluded.change_id, head_sha = excluded.head_sha,"
	    " job_id = excluded.job_id, at_ms = excluded.at_ms,"
	    " extension_version = excluded.extension_version, n_passed = excluded.n_passed,"
	    " n_failed = excluded.n_failed, n_missing = excluded.n_missing,"
	    " red_since_ms = CASE WHEN excluded.red_since_ms IS NOT NULL"
	    "  THEN COALESCE(platform_test.red_since_ms, excluded.red_since_ms) END"
	    " WHERE platform_test.change_id <= excluded.change_id",
	    V_TEXT(p->accelerator), V_TEXT(release_of(g)), V_TEXT(g->os), V_TEXT(g->torch), V_INT(p->change_id),
	    V_INT(g->job_id), V_INT(g->at_ms), V_TEXT(g->extension_version), V_INT(g->n_passed), V_INT(g->n_failed),
	    V_INT(g->n_missing), V_INT_OR_NULL(is_red(g) ? g->at_ms : 0));
	db_exec(d,
	    "DELETE FROM platform_test WHERE accelerator = ?1 AND (release, os) IN"
	    " (SELECT release, os FROM platform_test WHERE accelerator = ?1"
	    "  ORDER BY at_ms DESC, release, os LIMIT 1000 OFFSET ?2)",
	    V_TEXT(p->accelerator), V_INT(ROWS_PER_ACCELERATOR_MAX));
}

#define PLATFORM_KEY_RECORD(F, S)                                                                                      \
	F(S, BORROWED, release, NULL, "release", "")                                                                   \
	F(S, BORROWED, os, NULL, "os", "")
RECORD_LOCAL(platform_key, PLATFORM_KEY_RECORD)

/* Deletes rows of this change that it no longer supports, because a later attempt reports another version. Appends their
 * keys to *deleted: release and system, in turn. */
static void drop_withdrawn(struct txn *d, const struct platform_jobs *p, char ***deleted)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(PLATFORM_KEY_RECORD, "FROM platform_test WHERE accelerator = ?1 AND change_id = ?2"),
	    V_TEXT(p->accelerator), V_INT(p->change_id));
	struct platform_key key_of_row;
	char **gone = strv_copy(NULL);

	while (rows_next(r)) {
		bool is_there = false;

		record_read(r, &platform_key_record, &key_of_row);
		for (size_t i = 0; i < p->n_groups; i++)
			is_there |= strcmp(release_of(&p->groups[i]), key_of_row.release) == 0 &&
				    strcmp(p->groups[i].os, key_of_row.os) == 0;
		if (is_there)
			continue;
		strv_add(&gone, key_of_row.release);
		strv_add(&gone, key_of_row.os);
	}
	for (char **key = gone; *key; key += 2) {
		db_exec(d, "DELETE FROM platform_test WHERE accelerator = ?1 AND release = ?2 AND os = ?3",
		    V_TEXT(p->accelerator), V_TEXT(key[0]), V_TEXT(key[1]));
		strv_add(deleted, key[0]);
		strv_add(deleted, key[1]);
	}
	strv_free(gone);
}

#define TESTED_CHANGE_RECORD(F, S)                                                                                     \
	F(S, TEXT, must_pass, NULL, "a.must_pass", "")                                                                 \
	F(S, BOOL, is_going, NULL,                                                                                     \
	    "EXISTS (SELECT 1 FROM job j WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1"           \
	    " AND j.status = 'in_progress') OR EXISTS (SELECT 1 FROM dispatch x WHERE x.change_id = ?1"                \
	    " AND x.accelerator = ?2 AND x.is_current = 1 AND " DISPATCH_IS_AT_WORK("x.") ")",                         \
	    "")                                                                                                        \
	F(S, BOOL, has_versions, NULL,                                                                                 \
	    "EXISTS (SELECT 1 FROM job j WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1"           \
	    " AND j.environment IS NOT NULL)",                                                                         \
	    "A job reports the environment in which it ran.")                                                          \
	F(S, BOOL, has_rows, NULL,                                                                                     \
	    "EXISTS (SELECT 1 FROM platform_test p WHERE p.accelerator = ?2 AND p.change_id = ?1)", "")
RECORD_LOCAL(tested_change, TESTED_CHANGE_RECORD)

static void note_change(struct txn *d, int64_t change_id, const char *accelerator, char ***deleted)
{
	struct tested_change c;
	struct platform_jobs p = {.change_id = change_id, .accelerator = accelerator};

	if (!record_read_first(
		db_rows(d,
		    RECORD_QUERY(TESTED_CHANGE_RECORD, "FROM change c JOIN accelerator a ON a.name = ?2 WHERE c.id = ?1"
						       " AND c.kind IN ('push', 'nightly') AND a.level > ?3"),
		    V_INT(change_id), V_TEXT(accelerator), V_INT(LEVEL_1)),
		&tested_change_record, &c))
		return;
	if (c.has_versions)
		platform_jobs_read(d->view, c.must_pass, &p);
	/* red ones last: of two nightlies with one key, the red one stays */
	for (size_t i = 0; i < p.n_groups && !c.is_going; i++)
		if (!is_red(&p.groups[i]))
			put_platform_test(d, &p, &p.groups[i]);
	for (size_t i = 0; i < p.n_groups; i++)
		if (c.is_going ? p.groups[i].n_failed > 0 : is_red(&p.groups[i]))
			put_platform_test(d, &p, &p.groups[i]);
	if (!c.is_going && c.has_rows)
		drop_withdrawn(d, &p, deleted);
	for (size_t i = 0; i < p.n_jobs; i++) {
		free(p.jobs[i].torch);
		free(p.jobs[i].os);
		free(p.jobs[i].extension_version);
	}
	free(p.jobs);
	record_release(&tested_change_record, &c);
}

/* The newest earlier changes with reported versions, the newest first. free() */
static int64_t *earlier_changes(const struct view *d, int64_t change_id, const char *accelerator, size_t *ret_n)
{
	return rows_key_numbers(
	    db_rows(d,
		"SELECT DISTINCT j.change_id FROM (SELECT change_id, is_current, environment FROM job"
		"  INDEXED BY job_of_accelerator WHERE accelerator = ?1 AND id > 0"
		"  ORDER BY id DESC LIMIT ?4) j JOIN change c ON c.id = j.change_id"
		" WHERE j.change_id < ?2 AND j.is_current = 1"
		" AND j.environment IS NOT NULL AND c.kind IN ('push', 'nightly') ORDER BY j.change_id DESC LIMIT ?3",
		V_TEXT(accelerator), V_INT(change_id), V_INT(RESTORE_CHANGES_MAX), V_INT(RESTORE_JOBS_MAX)),
	    ret_n);
}

static bool is_row_missing(const struct view *d, const char *accelerator, char *const *keys)
{
	for (; *keys; keys += 2)
		if (!db_has(d, "SELECT 1 FROM platform_test WHERE accelerator = ?1 AND release = ?2 AND os = ?3",
			V_TEXT(accelerator), V_TEXT(keys[0]), V_TEXT(keys[1])))
			return true;
	return false;
}

/* If it deletes rows, judges earlier changes again until they have written these rows, which this change had
 * overwritten. */
void platform_tests_note(struct txn *d, int64_t change_id, const char *accelerator)
{
	char **deleted = strv_copy(NULL);
	int64_t *ids = NULL;
	size_t n = 0;

	note_change(d, change_id, accelerator, &deleted);
	if (*deleted)
		ids = earlier_changes(d->view, change_id, accelerator, &n);
	for (size_t i = 0; i < n && is_row_missing(d->view, accelerator, deleted); i++)
		note_change(d, ids[i], accelerator, &deleted);
	free(ids);
	strv_free(deleted);
}

void platform_tests_changed(struct txn *d, const char *accelerator)
{
	size_t n;
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT change_id FROM platform_test WHERE accelerator = ?1 AND change_id > 0"
	    " ORDER BY change_id LIMIT ?2",
	    V_TEXT(accelerator), V_INT(ROWS_PER_ACCELERATOR_MAX));
	int64_t *ids = rows_key_numbers(r, &n);

	/* oldest first, as in platform_tests_fill() */
	for (size_t i = 0; i < n; i++)
		platform_tests_note(d, ids[i], accelerator);
	free(ids);
}

void platform_tests_forget(struct txn *d, int64_t change_id)
{
	db_exec(d, "UPDATE platform_test SET change_id = 0, job_id = NULL WHERE change_id = ?1", V_INT(change_id));
}

void platform_tests_fill(struct txn *d)
{
	static const char FILLED[] = "platform_tests.filled";
	char **names;

	if (setting_int(d->view, FILLED, 0))
		return;
	names = rows_keys(db_rows(d, "SELECT name FROM accelerator WHERE is_gone = 0 ORDER BY name"));
	for (char **name = names; *name; name++) {
		struct rows *changes = db_rows(d,
		    "SELECT DISTINCT j.change_id FROM job j INDEXED BY job_of_accelerator"
		    " JOIN change c ON c.id = j.change_id WHERE j.accelerator = ?1"
		    " AND j.id > 0 AND j.is_current = 1 AND j.environment IS NOT NULL"
		    " AND c.kind IN ('push', 'nightly') ORDER BY j.change_id DESC LIMIT ?2",
		    V_TEXT(*name), V_INT(FILL_CHANGES_MAX));
		size_t n;
		int64_t *ids = rows_key_numbers(changes, &n);

		/* oldest first, so that the newest row stays and keeps the time since when it is red */
		while (n > 0)
			platform_tests_note(d, ids[--n], *name);
		free(ids);
	}
	setting_put_int(d, FILLED, 1);
	strv_free(names);
}
