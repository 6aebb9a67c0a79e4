#include "store/platform_jobs.h"

#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "model/states.h"

/* JOBS_MAX: the newest; a vendor that reports a thousand shards does not keep the writer. */
enum { JOBS_MAX = 200, TORCH_MAX_BYTES = 64, TEXT_MAX_BYTES = 100 };

/* ---- what the jobs say they ran on ---- */

static char *text_of(const json_t *obj, const char *key, size_t max_bytes)
{
	const char *s = json_get_str(obj, key);

	return s && *s ? xstrndup(s, utf8_cut(s, strlen(s), max_bytes)) : NULL;
}

static void read_environment(const char *text, struct platform_job *job)
{
	json_t *environment = NULL;

	if (!*text || json_parse(text, strlen(text), &environment, NULL))
		return;
	job->torch = text_of(environment, "torch", TORCH_MAX_BYTES);
	job->os = text_of(environment, "os", TEXT_MAX_BYTES);
	job->extension_version =
	    text_of(json_object_get(environment, "extension"), "version", TEXT_MAX_BYTES);
	json_decref(environment);
}

static void read_jobs(struct db *d, struct platform_jobs *p)
{
	struct rows *r = db_rows(d,
	    "SELECT id, completed_ms, environment FROM job WHERE change_id = ?1 AND accelerator = "
	    "?2"
	    " AND is_current = 1 AND status = 'completed' AND digest IS NOT NULL ORDER BY id DESC"
	    " LIMIT ?3",
	    V_INT(p->change_id), V_TEXT(p->accelerator), V_INT(JOBS_MAX));

	while (rows_next(r)) {
		struct platform_job *job;

		p->jobs = xrealloc(p->jobs, (p->n_jobs + 1) * sizeof(*p->jobs));
		job = &p->jobs[p->n_jobs++];
		*job = (struct platform_job){.id = rows_int(r, 0), .at_ms = rows_int(r, 1)};
		read_environment(rows_text(r, 2), job);
	}
}

/* ---- groups ---- */

static bool is_in(const struct platform_job *job, const struct platform_group *g)
{
	return (!job->torch || str_eq(job->torch, g->torch)) &&
	       (!job->os || !*g->os || str_eq(job->os, g->os));
}

static bool is_known(const struct platform_jobs *p, const struct platform_job *job)
{
	for (size_t i = 0; i < p->n_groups; i++)
		if (str_eq(p->groups[i].torch, job->torch) &&
		    (!job->os || str_eq(p->groups[i].os, job->os)))
			return true;
	return false;
}

static void add_groups(struct platform_jobs *p, bool with_os)
{
	for (size_t i = 0; i < p->n_jobs && p->n_groups < PLATFORM_GROUPS_MAX; i++) {
		const struct platform_job *job = &p->jobs[i];

		if (job->torch && (job->os != NULL) == with_os && !is_known(p, job))
			p->groups[p->n_groups++] = (struct platform_group){
			    .torch = job->torch, .os = job->os ? job->os : ""};
	}
}

/* Its newest job is the one that names it, not one that says nothing. */
static void describe(const struct platform_jobs *p, struct platform_group *g)
{
	for (size_t i = 0; i < p->n_jobs; i++) {
		const struct platform_job *job = &p->jobs[i];

		if (!job->torch || !is_in(job, g) || (g->job_id && job->at_ms <= g->at_ms))
			continue;
		g->job_id = job->id;
		g->at_ms = job->at_ms;
		g->extension_version = job->extension_version;
	}
}

static bool has_job(const struct platform_jobs *p, const struct platform_group *g, int64_t job_id)
{
	for (size_t i = 0; i < p->n_jobs; i++)
		if (p->jobs[i].id == job_id)
			return is_in(&p->jobs[i], g);
	return true; /* nobody's, or given up: it concerns all of them */
}

/* ---- how the must-pass tests came out ---- */

enum outcome { IS_NOT_REPORTED, HAS_PASSED, IS_MISSING, HAS_FAILED }; /* the later one wins */

/* One cell of a must-pass test: there is one for each dtype. */
struct wanted {
	size_t name; /* which of must_pass */
	int64_t test_id, job_id;
	enum test_status status;
};

struct demands {
	struct wanted *at; /* by test_id */
	size_t n, n_names;
};

static void add_cells(struct db *d, const struct platform_jobs *p, struct demands *m,
    const char *suite, const char *test)
{
	struct rows *r = db_rows(d,
	    "SELECT v.test_id, v.job_id, v.status FROM test t JOIN verdict v ON v.change_id = ?1"
	    " AND v.accelerator = ?2 AND v.test_id = t.id WHERE t.suite = ?3 AND t.name = ?4",
	    V_INT(p->change_id), V_TEXT(p->accelerator), V_TEXT(suite), V_TEXT(test));

	while (rows_next(r)) {
		m->at = xrealloc(m->at, (m->n + 1) * sizeof(*m->at));
		m->at[m->n++] = (struct wanted){
		    .name = m->n_names,
		    .test_id = rows_int(r, 0),
		    .job_id = rows_int(r, 1),
		    .status = test_status_parse(rows_text(r, 2)),
		};
	}
}

/* "a/b/c" may be b/c of suite a, or c of suite a/b. */
static void add_demand(
    struct db *d, const struct platform_jobs *p, struct demands *m, const char *name)
{
	char *suite = xstrdup(name);

	for (char *slash = suite; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		add_cells(d, p, m, suite, slash + 1);
	}
	free(suite);
	m->n_names++;
}

static int by_test(const void *x, const void *y)
{
	const struct wanted *a = x, *b = y;

	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

static void read_demands(
    struct db *d, const struct platform_jobs *p, const char *must_pass, struct demands *m)
{
	json_t *names = NULL, *name;
	size_t i;

	if (json_parse(must_pass, strlen(must_pass), &names, NULL) == 0)
		json_array_foreach(names, i, name)
		{
			if (json_is_string(name))
				add_demand(d, p, m, json_string_value(name));
		}
	json_decref(names);
	if (m->n)
		qsort(m->at, m->n, sizeof(*m->at), by_test);
}

static void note(enum outcome *outcomes, const struct wanted *w, enum test_status status)
{
	enum outcome o = status == TEST_PASS                           ? HAS_PASSED
			 : status == TEST_FAIL || status == TEST_ERROR ? HAS_FAILED
								       : IS_MISSING;

	if (o > outcomes[w->name])
		outcomes[w->name] = o;
}

/* Cells are of all jobs. Where a change was tested with several versions, what this group's own jobs
 * say is looked up. A cell that is SKIP stays so: the registry may demand it. */
static void add_results(
    struct db *d, int64_t job_id, const struct demands *m, enum outcome *outcomes)
{
	struct rows *r =
	    db_rows(d, "SELECT test_id, status FROM result WHERE job_id = ?1", V_INT(job_id));

	while (rows_next(r)) {
		struct wanted key = {.test_id = rows_int(r, 0)};
		const struct wanted *w =
		    m->n ? bsearch(&key, m->at, m->n, sizeof(*m->at), by_test) : NULL;

		if (w)
			note(outcomes, w,
			    w->status == TEST_SKIP ? TEST_SKIP
						   : test_status_parse(rows_text(r, 1)));
	}
}

static void judge(
    struct db *d, const struct platform_jobs *p, const struct demands *m, struct platform_group *g)
{
	enum outcome *outcomes = xcalloc(m->n_names + 1, sizeof(*outcomes));

	for (size_t i = 0; i < m->n; i++)
		if (p->n_groups == 1 || has_job(p, g, m->at[i].job_id))
			note(outcomes, &m->at[i], m->at[i].status);
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

void platform_jobs_read(struct db *d, int64_t change_id, const char *accelerator,
    const char *must_pass, struct platform_jobs *ret)
{
	struct demands m = {0};

	*ret = (struct platform_jobs){.change_id = change_id, .accelerator = accelerator};
	read_jobs(d, ret);
	add_groups(ret, true);
	add_groups(ret, false);
	if (!ret->n_groups)
		return;
	read_demands(d, ret, must_pass, &m);
	for (size_t i = 0; i < ret->n_groups; i++) {
		describe(ret, &ret->groups[i]);
		judge(d, ret, &m, &ret->groups[i]);
	}
	free(m.at);
}

void platform_jobs_release(struct platform_jobs *p)
{
	for (size_t i = 0; i < p->n_jobs; i++) {
		free(p->jobs[i].torch);
		free(p->jobs[i].os);
		free(p->jobs[i].extension_version);
	}
	free(p->jobs);
}
