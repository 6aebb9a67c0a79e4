/* The same tests in the same jobs on commits of the base branch, and the commits that landed between these runs. */

#include "model/plan.h"
#include "store/branch_commits.h"
#include "verdict/attribution_facts.h"

enum {
	BASE_ATTEMPTS_MAX = 20, /* of one job on the merge base, the newest */
	MANY_FAILURES = 500,    /* in one job; with more, fewer runs of the branch are read for it */
	OLDER_MAX = 12,
	NEWER_MAX = 6,
	OLDER_FOR_MANY = 3,
	NEWER_FOR_MANY = 2,
	NEAR_MAX = 50, /* changes on the commits between two runs */
};

/* The failures of a job are compared with one run after the other, so the last answer is kept. */
bool attribution_is_other_build(struct attribution_case *c, int64_t other_job, int64_t failed_job)
{
	if (c->builds.other_job == other_job && c->builds.failed_job == failed_job)
		return c->builds.differ;
	c->builds.other_job = other_job;
	c->builds.failed_job = failed_job;
	c->builds.differ = db_has(c->d,
	    "SELECT 1 FROM job a CROSS JOIN job b ON b.id = ?2 WHERE a.id = ?1"
	    " AND (json_extract(a.environment, '$.extension.version')"
	    " <> json_extract(b.environment, '$.extension.version') OR json_extract(a.environment, '$.device')"
	    " <> json_extract(b.environment, '$.device'))",
	    V_INT(other_job), V_INT(failed_job));
	return c->builds.differ;
}

/* ---- the base branch ---- */

struct base_job { /* the failed job on one commit of the branch */
	struct job_run run;
	int distance;
	char sha[41];
};
struct base_jobs {
	struct base_job at[OLDER_MAX + NEWER_MAX + BASE_ATTEMPTS_MAX];
	size_t n;
};

#define TESTED_JOB_RECORD(F, S)                                                                                        \
	F(S, BORROWED, sha, NULL, "x.head_sha", "")                                                                    \
	F(S, ID, id, NULL, "j.id", "")                                                                                 \
	F(S, INT, n_tests, NULL, "j.n_tests", "")
RECORD_LOCAL(tested_job, TESTED_JOB_RECORD)

/* The key of the rows is the position. */
static void add_base_jobs(struct base_jobs *l, size_t job, struct rows *r, int64_t base_position)
{
	while (rows_next(r)) {
		struct base_job *b = &l->at[l->n++];
		struct tested_job tested;

		record_read(r, &tested_job_record, &tested);
		*b = (struct base_job){.run = {.job = job, .id = tested.id, .n_tests = tested.n_tests},
		    .distance = (int)(base_position - rows_key_number(r))};
		snprintf(b->sha, sizeof(b->sha), "%s", tested.sha);
	}
}

#define TESTED_JOBS(order)                                                                                             \
	RECORD_QUERY_BY("b.position", TESTED_JOB_RECORD,                                                               \
	    "FROM branch_commit b CROSS JOIN change x ON x.repository_key = b.repository_key AND x.head_sha = b.sha"   \
	    " AND x.kind = 'push' CROSS JOIN job j ON j.change_id = x.id AND j.accelerator = ?5 AND j.workflow = ?6"   \
	    " AND j.name = ?7 AND j.is_current = 1 AND j.runner = ?8 AND j.status = 'completed'"                       \
	    " AND j.digest IS NOT NULL WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position > ?3"                 \
	    " AND b.position <= ?4 ORDER BY b.position " order " LIMIT ?9")
#define TESTED_VALUES(first, last)                                                                                     \
	V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(first), V_INT(last), V_TEXT(c->accelerator),                  \
	    V_TEXT(j->workflow), V_TEXT(j->name), V_TEXT(j->runner)

enum { BASE_MAX = OLDER_MAX + NEWER_MAX + 1 };

/* `at` is red, and so is `run`. The marks of `run` replace those of `at` if `run` failed like this failure, on the same
 * kind of device and version of the extension. */
static void add_red(struct base_run *at, const struct base_run *run, const struct failure_mark *mark)
{
	bool was_alike = !at->is_other_build && failure_marks_are_alike(&at->mark, mark),
	     is_alike = !run->is_other_build && failure_marks_are_alike(&run->mark, mark);

	/* an experiment that is red with another message proves nothing about this failure */
	if (is_alike == was_alike)
		at->is_experiment |= run->is_experiment;
	else if (is_alike)
		at->is_experiment = run->is_experiment;
	at->varies |= is_alike && was_alike && at->mark.numbers != run->mark.numbers;
	at->n_red += run->n_red;
	at->n_red_alike += run->n_red_alike;
	if (is_alike) {
		at->mark = run->mark;
		at->job = run->job;
		at->is_other_build = false;
	}
}

/* One passed and the other failed in the same way, and only one of them was of the build that failed here. */
static bool is_other_outcome(const struct base_run *a, const struct base_run *b, const struct failure_mark *mark)
{
	const struct base_run *red = a->outcome == BASE_RED ? a : b, *green = red == a ? b : a;

	return a->is_other_build != b->is_other_build && red->outcome == BASE_RED && green->outcome == BASE_GREEN &&
	       failure_marks_are_alike(&red->mark, mark);
}

/* Adds an outcome on a commit of the branch. Commits come newest first, except that experiments on the base come last. */
static void add_base(struct red_failure *f, const struct base_run *run)
{
	size_t i = 0;
	struct base_run *at;

	if (!f->base)
		f->base = xcalloc(BASE_MAX, sizeof(*f->base));
	while (i < f->facts.n_base && f->base[i].distance < run->distance)
		i++;
	at = &f->base[i];
	if (i == f->facts.n_base || at->distance != run->distance) {
		if (f->facts.n_base == BASE_MAX)
			return;
		memmove(at + 1, at, (f->facts.n_base - i) * sizeof(*at));
		*at = *run;
		f->facts.n_base++;
	} else if (at->outcome == BASE_SKIPPED || (at->is_other_build && is_other_outcome(at, run, &f->facts.mark))) {
		*at = *run;
	} else if (run->is_other_build && is_other_outcome(at, run, &f->facts.mark)) {
		/* the outcome of the same build counts */
	} else if (run->outcome != BASE_SKIPPED) {
		bool was_green = at->outcome == BASE_GREEN;

		if (at->outcome == run->outcome && was_green) {
			at->is_experiment |= run->is_experiment;
			if (!at->experiment_ended_ms)
				at->experiment_ended_ms = run->experiment_ended_ms;
		} else if (at->outcome == run->outcome) {
			add_red(at, run, &f->facts.mark);
		} else {
			bool is_green = run->outcome == BASE_GREEN;

			at->outcome = BASE_MIXED;
			at->is_experiment |= run->is_experiment;
			if (is_green)
				at->job = run->job;
			else if (was_green || failure_marks_are_alike(&run->mark, &f->facts.mark))
				at->mark = run->mark;
			if (is_green && !at->experiment_ended_ms)
				at->experiment_ended_ms = run->experiment_ended_ms;
		}
	}
	f->facts.base = f->base;
}

void attribution_add_base(struct attribution_case *c, struct red_failure *f, const struct base_run *run)
{
	struct base_run added = *run;

	added.n_red = run->outcome == BASE_RED;
	added.is_other_build = run->outcome == BASE_GREEN && attribution_is_other_build(c, run->job, f->job_id);
	if (run->outcome == BASE_RED && run->mark.is_infrastructure) {
		added.outcome = BASE_SKIPPED; /* nothing is known of the test */
		added.is_experiment = false;
	} else if (run->outcome == BASE_RED && failure_marks_are_alike(&run->mark, &f->facts.mark)) {
		if (attribution_is_outage(c, run->mark.key, run->job)) {
			added.outcome = BASE_SKIPPED;
			added.is_experiment = false;
		} else if (attribution_is_other_build(c, run->job, f->job_id)) {
			added.is_other_build = true;
			added.is_experiment = false;
		} else {
			added.n_red_alike = 1;
		}
	}
	add_base(f, &added);
}

static void read_base_job(struct attribution_case *c, const struct base_job *b)
{
	const struct job_name *j = &c->jobs[b->run.job];

	attribution_read_run(c, &b->run);
	for (size_t i = 0; i < j->n_failures; i++) {
		struct red_failure *f = &c->failures[j->first_failure + i];
		struct base_run run = {.mark = f->seen.mark, .distance = b->distance, .job = b->run.id};

		memcpy(run.sha, b->sha, sizeof(run.sha));
		run.outcome = f->seen.has_red ? BASE_RED : f->seen.has_pass ? BASE_GREEN : BASE_SKIPPED;
		if (f->seen.has_red || f->seen.has_pass || f->seen.has_skip)
			attribution_add_base(c, f, &run);
	}
}

#define TAKES_BACK(title)                                                                                              \
	"(" title " LIKE '%revert%' OR " title " LIKE '%reland%' OR " title " LIKE '%re-land%'"                        \
	" OR " title " LIKE '%reapply%' OR " title " LIKE '%back out%' OR " title " LIKE '%backout%')"

/* A commit between the nearest tested commits around the base may have been reverted and landed again: two commits there
 * have titles that say "revert" or "reland", or one has such a title and names another commit there. */
static bool has_revert_near(const struct attribution_case *c, const struct base_jobs *l, int64_t base_position)
{
	int older = 0, newer = 0;

	for (size_t i = l->n; i-- > 0;) {
		if (l->at[i].distance > 0 && (!older || l->at[i].distance < older))
			older = l->at[i].distance;
		if (l->at[i].distance < 0 && (!newer || l->at[i].distance > newer))
			newer = l->at[i].distance;
	}
	return db_has(c->d,
	    "SELECT 1 FROM branch_commit a CROSS JOIN branch_commit b ON b.repository_key = ?1 AND b.ref = ?2"
	    " AND b.position > ?3 AND b.position <= ?4 AND b.position <> a.position WHERE a.repository_key = ?1"
	    " AND a.ref = ?2 AND a.position > ?3 AND a.position <= ?4 AND " TAKES_BACK("a.title") " AND (" TAKES_BACK(
		"b.title") " OR (b.title <> '' AND instr(a.title, b.title) > 0)) LIMIT 1",
	    V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(base_position - older), V_INT(base_position - newer));
}

/* Reads the failed job on the tested commits around the base, the newest first, and then on the base itself. */
static void read_base_of_job(struct attribution_case *c, size_t job, const char *sha, int64_t position)
{
	struct base_jobs l = {.n = 0};
	const struct job_name *j = &c->jobs[job];
	bool is_many = j->n_failures > MANY_FAILURES, has_revert = false;

	/* a push has no newer ones: they contain the push itself */
	if (position >= 0 && !c->is_push)
		add_base_jobs(&l, job,
		    db_rows(c->d, TESTED_JOBS(""), TESTED_VALUES(position, position + c->distance),
			V_INT(is_many ? NEWER_FOR_MANY : NEWER_MAX)),
		    position);
	for (size_t i = 0; i < l.n / 2; i++) {
		struct base_job b = l.at[i];

		l.at[i] = l.at[l.n - 1 - i];
		l.at[l.n - 1 - i] = b;
	}
	if (position >= 0) {
		add_base_jobs(&l, job,
		    db_rows(c->d, TESTED_JOBS("DESC"), TESTED_VALUES(position - c->distance - 1, position - 1),
			V_INT(is_many ? OLDER_FOR_MANY : OLDER_MAX)),
		    position);
		has_revert = l.n > 0 && has_revert_near(c, &l, position);
	}
	/* all attempts on the base, also if no push of it is on record: a pass in one of them counts */
	add_base_jobs(&l, job,
	    db_rows(c->d,
		RECORD_QUERY(TESTED_JOB_RECORD,
		    "FROM change x CROSS JOIN job j ON j.change_id = x.id AND j.accelerator = ?3 AND j.workflow = ?4"
		    " AND j.name = ?5 AND j.runner = ?6 AND j.status = 'completed' AND j.digest IS NOT NULL"
		    " WHERE x.repository_key = ?1 AND x.head_sha = ?2 AND x.kind = 'push' ORDER BY j.id DESC LIMIT ?7"),
		V_TEXT(c->repository_key), V_TEXT(sha), V_TEXT(c->accelerator), V_TEXT(j->workflow), V_TEXT(j->name),
		V_TEXT(j->runner), V_INT(BASE_ATTEMPTS_MAX)),
	    0);
	for (size_t i = 0; i < l.n; i++)
		read_base_job(c, &l.at[i]);
	for (size_t i = 0; i < j->n_failures; i++)
		c->failures[j->first_failure + i].facts.has_revert_near = has_revert;
}

void fact_branch(struct attribution_case *c)
{
	int64_t position = -1;
	char *sha = NULL; /* of the commit that the change is compared with; position -1: it is not on the branch */

	if (c->is_push) {
		position = branch_position(c->d->view, c->repository_key, c->ref, c->head_sha) - 1;
		sha = db_text(c->d,
		    "SELECT sha FROM branch_commit WHERE repository_key = ?1 AND ref = ?2 AND position = ?3",
		    V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(position));
	} else if (c->merge_base_sha && strcmp(c->merge_base_sha, c->head_sha) != 0) {
		/* if its head is its merge base, it has landed unchanged, and a failure there is its own */
		position = branch_position(c->d->view, c->repository_key, c->ref, c->merge_base_sha);
		sha = xstrdup(c->merge_base_sha);
	}
	for (size_t i = 0; i < c->n_failures; i++)
		c->failures[i].facts.is_base_known = sha != NULL;
	for (size_t job = 0; sha && job < c->n_jobs; job++)
		read_base_of_job(c, job, sha, position);
	free(sha);
}

/* ---- what landed between the runs of the branch ---- */

struct stretch { /* of commits: after the first, up to the last */
	int64_t first, last;
	bool is_green_first;
	bool is_red_around; /* both ends are red, and no run tested the merge base between them */
};

struct own_commits {      /* in a stretch */
	bool has_landing; /* a commit that names this pull request */
	bool has_commit;  /* a commit of the same author */
};

/* From the newest green run to the oldest red one after it, or as far as the runs go back. False: none is red. */
static bool find_breakage(const struct red_failure *f, int64_t base_position, struct stretch *ret)
{
	size_t i = 0, n = f->facts.n_base;

	while (i < n && f->base[i].distance < 0)
		i++;
	while (i < n && f->base[i].outcome != BASE_RED && f->base[i].outcome != BASE_GREEN)
		i++;
	if (i == n || f->base[i].outcome != BASE_RED)
		return false;
	for (; i < n && f->base[i].outcome != BASE_GREEN; i++)
		if (f->base[i].outcome == BASE_RED)
			ret->last = base_position - f->base[i].distance;
	ret->is_green_first = i < n;
	ret->first = ret->is_green_first ? base_position - f->base[i].distance : ret->last - f->facts.max_distance;
	return true;
}

/* "Fix it (#123)" names pull request 123. */
static bool title_names_pull(const char *title, int64_t number)
{
	char name[24];
	size_t n = (size_t)snprintf(name, sizeof(name), "#%lld", (long long)number);

	for (const char *p = title; (p = strstr(p, name)) != NULL; p += n)
		if (p[n] < '0' || p[n] > '9')
			return true;
	return false;
}

#define LANDED_COMMIT_RECORD(F, S)                                                                                     \
	F(S, BORROWED, title, NULL, "title", "")                                                                       \
	F(S, BOOL, is_own, NULL,                                                                                       \
	    "?6 <> 0 AND (COALESCE(author, '') = '' OR COALESCE(?5, '') = '' OR lower(author) = lower(?5))", "")
RECORD_LOCAL(landed_commit, LANDED_COMMIT_RECORD)

/* An author's commits count only if it is known when the branch broke. An author who is not known may be the same. */
static struct own_commits own_commits(const struct attribution_case *c, const struct stretch *s)
{
	struct own_commits own = {.has_landing = false};
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(LANDED_COMMIT_RECORD,
		"FROM branch_commit WHERE repository_key = ?1 AND ref = ?2 AND position > ?3 AND position <= ?4"),
	    V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(s->first), V_INT(s->last), V_TEXT(c->author),
	    V_INT(s->is_green_first));

	while (rows_next(r)) {
		struct landed_commit landed;

		record_read(r, &landed_commit_record, &landed);
		own.has_landing |= c->number > 0 && title_names_pull(landed.title, c->number);
		own.has_commit |= landed.is_own;
	}
	return own;
}

/* The stretch between the nearest runs on both sides of the merge base. */
static bool find_gap(const struct red_failure *f, int64_t base_position, struct stretch *ret)
{
	size_t n_newer = 0, older, n = f->facts.n_base;

	while (n_newer < n && f->base[n_newer].distance < 0)
		n_newer++;
	older = n_newer + (n_newer < n && f->base[n_newer].distance == 0);
	if (n_newer == 0 || older == n)
		return false;
	ret->first = base_position - f->base[older].distance;
	ret->last = base_position - f->base[n_newer - 1].distance;
	ret->is_red_around =
	    older == n_newer && f->base[n_newer - 1].outcome == BASE_RED && f->base[older].outcome == BASE_RED;
	return true;
}

/* The files of a landed commit are those that its push named, and the known files of its SHA and of the pull request that
 * its title names. */
static bool has_related_commit(const struct attribution_case *c, const struct stretch *s)
{
	return db_has(c->d,
	    "WITH landed AS (SELECT sha, title, files FROM branch_commit"
	    "  WHERE repository_key = ?1 AND ref = ?2 AND position > ?3 AND position <= ?4),"
	    " own AS (SELECT e.value AS path FROM change_files g, json_each(g.files) e"
	    "  WHERE g.repository_key = ?1 AND g.head_sha = ?5)"
	    " SELECT 1 FROM landed l WHERE EXISTS (SELECT 1 FROM pull p WHERE p.repository_key = ?1 AND p.number = ?6"
	    "  AND p.title LIKE '%revert%' AND l.title <> '' AND instr(p.title, l.title) > 0)"
	    " OR EXISTS (SELECT 1 FROM json_each(COALESCE(l.files, '[]')) e"
	    "  WHERE e.value = ?7 OR e.value IN (SELECT path FROM own)) OR EXISTS (SELECT 1 FROM own WHERE path = ?7)"
	    " OR EXISTS (SELECT 1 FROM change_files g, json_each(g.files) e"
	    "  WHERE g.repository_key = ?1 AND g.head_sha = l.sha AND e.value IN (SELECT path FROM own))"
	    " OR EXISTS (SELECT 1 FROM pull_head h CROSS JOIN change x ON x.id = h.change_id"
	    "  CROSS JOIN change_files g ON g.repository_key = ?1 AND g.head_sha = x.head_sha, json_each(g.files) e"
	    "  WHERE h.repository_key = ?1 AND h.number = CASE WHEN l.title LIKE '%(#%)'"
	    "   THEN CAST(substr(l.title, instr(l.title, '(#') + 2) AS INTEGER) END"
	    "  AND e.value IN (SELECT path FROM own)) LIMIT 1",
	    V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(s->first), V_INT(s->last), V_TEXT(c->head_sha),
	    V_INT(c->number), V_TEXT(FILES_INCOMPLETE));
}

#define NEAR_CHANGES_RECORD(F, S)                                                                                      \
	F(S, INT, n_passed, NULL, "COUNT(DISTINCT CASE WHEN r.status = 'PASS' THEN n.id END)", "")                     \
	F(S, INT, n_red, NULL,                                                                                         \
	    "COUNT(DISTINCT CASE WHEN lower(n.author) <> lower(?6) AND EXISTS (SELECT 1"                               \
	    " FROM failure f WHERE f.change_id = n.id AND f.job_id = j.id AND f.test_id = ?10"                         \
	    " AND f.key = ?11) THEN lower(n.author) END)",                                                             \
	    "")
RECORD_LOCAL(near_changes, NEAR_CHANGES_RECORD)

/* Counts the pull requests with a merge base between these runs on which the test passed, and the other authors of those
 * that failed in the same way. */
static void read_near(struct attribution_case *c, const struct stretch *s, struct red_failure *f)
{
	const struct job_name *j = &c->jobs[f->job];
	struct near_changes near = {0};

	record_read_first(
	    db_rows(c->d,
		"WITH near AS (SELECT x.id, x.author FROM branch_commit b CROSS JOIN change x"
		"  ON x.repository_key = b.repository_key AND x.merge_base_sha = b.sha"
		"  AND x.kind = 'pull_request' AND x.id <> ?5 WHERE b.repository_key = ?1"
		"  AND b.ref = ?2 AND b.position >= ?3 AND b.position <= ?4"
		"  ORDER BY b.position, x.id LIMIT ?12) " RECORD_QUERY(NEAR_CHANGES_RECORD,
		    "FROM near n CROSS JOIN job j ON j.change_id = n.id AND j.accelerator = ?7 AND j.workflow = ?8"
		    " AND j.name = ?9 AND j.runner = ?13 AND j.status = 'completed' AND j.digest IS NOT NULL"
		    " CROSS JOIN job_test r ON r.job_id = j.id AND r.test_id = ?10"),
		V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(s->first), V_INT(s->last), V_INT(c->change_id),
		V_TEXT(c->author), V_TEXT(c->accelerator), V_TEXT(j->workflow), V_TEXT(j->name), V_INT(f->test_id),
		V_INT(f->facts.mark.key), V_INT(NEAR_MAX), V_TEXT(j->runner)),
	    &near_changes_record, &near);
	f->facts.n_passed_near = (int)near.n_passed;
	f->facts.n_red_near = (int)near.n_red;
}

void fact_landed(struct attribution_case *c)
{
	struct stretch last = {.first = -1}, last_gap = {.first = -1}, s;
	struct own_commits own = {.has_landing = false};
	bool was_related = false;
	int64_t position;

	if (c->is_push || !c->merge_base_sha)
		return;
	position = branch_position(c->d->view, c->repository_key, c->ref, c->merge_base_sha);
	for (size_t i = 0; position >= 0 && i < c->n_failures; i++) {
		struct red_failure *f = &c->failures[i];

		if (find_breakage(f, position, &s)) {
			if (s.first != last.first || s.last != last.last)
				own = own_commits(c, &s);
			last = s;
			f->facts.has_own_landing = own.has_landing;
			f->facts.has_own_commit = own.has_commit;
		}
		if (find_gap(f, position, &s)) {
			if (s.first != last_gap.first || s.last != last_gap.last)
				was_related = has_related_commit(c, &s);
			last_gap = s;
			f->facts.has_related_commit = was_related;
			/* only if it matters: no experiment can test the merge base itself */
			if (s.is_red_around && !f->facts.accepts_experiments &&
			    c->jobs[f->job].n_failures <= MANY_FAILURES)
				read_near(c, &s, f);
		}
	}
}
