/* How the failed tests did in the same jobs: in other attempts on this commit and on the pull request's older heads, on
 * commits of the base branch, and in experiments. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/attribution_facts.h"
#include "store/branch_commits.h"

enum {
	HEADS_MAX = 6,     /* of the same pull request, the newest */
	ATTEMPTS_MAX = 20, /* of one job on one commit, the newest */
	SHA_SHORT_CHARS = 7,
	MANY_FAILURES = 500, /* in one job: fewer runs of the branch are read for them */
	OLDER_MAX = 12,
	NEWER_MAX = 6,
	OLDER_FOR_MANY = 3,
	NEWER_FOR_MANY = 2,
};

/* ---- this pull request ---- */

struct own_run {
	struct job_run run;
	bool is_here; /* on this commit */
	/* A pass in it counts: it is recent, was against this base branch, and was of this commit. */
	bool is_evidence;
	bool is_current;
};

void attribution_failed_again(struct red_failure *f)
{
	f->facts.n_failed_again += f->seen.has_red;
	f->facts.numbers_vary |= f->seen.is_alike && f->seen.mark.numbers != f->facts.mark.numbers;
}

/* In one run a test may have several results: it passed there only if none of them is red. */
static void note_own_run(struct red_failure *f, const struct own_run *own)
{
	struct attribution_facts *facts = &f->facts;
	const struct seen *seen = &f->seen;

	if (!seen->has_red && !seen->has_pass)
		return;
	facts->here.n++;
	facts->here.n_hits += seen->is_alike;
	if (!own->is_here || own->is_current || !own->is_evidence)
		return;
	attribution_failed_again(f);
	if (!seen->has_red)
		facts->passed_here_job = seen->job_id;
}

/* Oldest first: the heads of the pull request, this one last; a push has itself alone. Returns how many. */
static size_t list_heads(const struct attribution_case *c, int64_t heads[HEADS_MAX])
{
	size_t n = 0;
	struct rows *r;

	heads[n++] = c->change_id;
	if (c->number) {
		r = db_rows(c->d,
		    "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2 AND "
		    "change_id <> ?3"
		    " GROUP BY change_id ORDER BY MAX(since_ms) DESC LIMIT ?4",
		    V_TEXT(c->key.text), V_INT(c->number), V_INT(c->change_id),
		    V_INT(HEADS_MAX - 1));
		while (rows_next(r))
			heads[n++] = rows_int(r, 0);
	}
	for (size_t i = 0; i < n / 2; i++) {
		int64_t id = heads[i];

		heads[i] = heads[n - 1 - i];
		heads[n - 1 - i] = id;
	}
	return n;
}

/* What its report documents decides; a text that can be no commit documents none. */
static bool is_of_commit(const char *documented, const char *sha, bool is_superseded)
{
	size_t n = documented ? strspn(documented, "0123456789abcdefABCDEF") : 0;

	if (n < SHA_SHORT_CHARS || documented[n])
		return !is_superseded;
	return n <= strlen(sha) && strncasecmp(documented, sha, n) == 0;
}

static size_t list_attempts(
    const struct attribution_case *c, size_t job, int64_t change_id, struct own_run *list)
{
	const struct job_name *j = &c->jobs[job];
	size_t n = 0;
	struct rows *r = db_rows(c->d,
	    "SELECT id, n_tests, is_current, completed_ms >= ?6 AND NOT EXISTS (SELECT 1 FROM "
	    "dispatch e"
	    /* with another base branch it was another test */
	    "  WHERE e.change_id = ?1 AND e.accelerator = ?2 AND e.original_action = 'edited'"
	    "  AND e.created_ms >= job.completed_ms)"
	    ", json_extract(environment, '$.torch_commit'),"
	    /* it ended after another head was pushed, which may be what it checked out */
	    " COALESCE((SELECT h.change_id <> ?1 FROM pull_head h WHERE h.repository_key = ?8 AND "
	    "h.number = ?9 AND h.since_ms < job.completed_ms ORDER BY h.since_ms DESC LIMIT 1), 0)"
	    " FROM job WHERE change_id = ?1 AND accelerator = ?2 AND workflow = ?3 AND name = ?4 "
	    "AND runner = ?5"
	    " AND status = 'completed' AND digest IS NOT NULL ORDER BY id DESC LIMIT ?7",
	    V_INT(change_id), V_TEXT(c->accelerator), V_TEXT(j->workflow), V_TEXT(j->name),
	    V_TEXT(j->runner), V_INT(c->now_ms - c->window_ms), V_INT(ATTEMPTS_MAX),
	    V_TEXT(c->key.text), V_INT(c->number));

	while (rows_next(r))
		list[n++] = (struct own_run){
		    .run = {job, rows_int(r, 0), rows_int(r, 1)},
		    .is_here = change_id == c->change_id,
		    .is_current = rows_int(r, 2),
		    .is_evidence =
			rows_int(r, 3) && is_of_commit(rows_is_null(r, 4) ? NULL : rows_text(r, 4),
					      c->head_sha, rows_int(r, 5)),
		};
	return n;
}

static void read_own_run(struct attribution_case *c, const struct own_run *own)
{
	const struct job_name *j = &c->jobs[own->run.job];

	attribution_read_run(c, &own->run);
	for (size_t i = 0; i < j->n_failures; i++)
		note_own_run(&c->failures[j->first_failure + i], own);
}

void attribution_read_own_runs(struct attribution_case *c)
{
	int64_t heads[HEADS_MAX];
	size_t n_heads = list_heads(c, heads);

	for (size_t job = 0; job < c->n_jobs; job++)
		for (size_t h = 0; h < n_heads; h++) {
			struct own_run list[ATTEMPTS_MAX];
			size_t n = list_attempts(c, job, heads[h], list);

			while (n-- > 0) /* oldest first */
				read_own_run(c, &list[n]);
		}
}

/* ---- the base branch ---- */

struct base_job { /* the failed job on one commit of the branch */
	struct job_run run;
	int distance;
	char sha[41];
};
struct base_jobs {
	struct base_job at[OLDER_MAX + NEWER_MAX + ATTEMPTS_MAX];
	size_t n;
};

/* `r`: position, SHA, job, tests. */
static void take_base_jobs(struct base_jobs *l, size_t job, struct rows *r, int64_t base_position)
{
	while (rows_next(r)) {
		struct base_job *b = &l->at[l->n++];

		*b = (struct base_job){
		    .run = {.job = job, .id = rows_int(r, 2), .n_tests = rows_int(r, 3)},
		    .distance = (int)(base_position - rows_int(r, 0))};
		snprintf(b->sha, sizeof(b->sha), "%s", rows_text(r, 1));
	}
}

#define TESTED_JOBS                                                                                \
	"SELECT b.position, b.sha, j.id, j.n_tests FROM branch_commit b CROSS JOIN change x"       \
	" ON x.repository_key = b.repository_key AND x.head_sha = b.sha AND x.kind = 'push'"       \
	" CROSS JOIN job j ON j.change_id = x.id AND j.accelerator = ?5 AND j.workflow = ?6 AND "  \
	"j.name = ?7"                                                                              \
	"  AND j.is_current = 1 AND j.runner = ?8 AND j.status = 'completed' AND j.digest IS NOT " \
	"NULL"                                                                                     \
	" WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position > ?3 AND b.position <= ?4"
#define TESTED_VALUES(first, last)                                                                 \
	V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(first), V_INT(last), V_TEXT(c->accelerator),    \
	    V_TEXT(j->workflow), V_TEXT(j->name), V_TEXT(j->runner)

/* A push has no newer ones: they hold what it brought. */
static void list_newer(
    const struct attribution_case *c, size_t job, int64_t base_position, struct base_jobs *l)
{
	const struct job_name *j = &c->jobs[job];

	if (c->is_push)
		return;
	take_base_jobs(l, job,
	    db_rows(c->d, TESTED_JOBS " ORDER BY b.position LIMIT ?9",
		TESTED_VALUES(base_position, base_position + c->distance),
		V_INT(j->n_failures > MANY_FAILURES ? NEWER_FOR_MANY : NEWER_MAX)),
	    base_position);
	for (size_t i = 0; i < l->n / 2; i++) {
		struct base_job b = l->at[i];

		l->at[i] = l->at[l->n - 1 - i];
		l->at[l->n - 1 - i] = b;
	}
}

static void list_older(
    const struct attribution_case *c, size_t job, int64_t base_position, struct base_jobs *l)
{
	const struct job_name *j = &c->jobs[job];

	take_base_jobs(l, job,
	    db_rows(c->d, TESTED_JOBS " ORDER BY b.position DESC LIMIT ?9",
		TESTED_VALUES(base_position - c->distance - 1, base_position - 1),
		V_INT(j->n_failures > MANY_FAILURES ? OLDER_FOR_MANY : OLDER_MAX)),
	    base_position);
}

/* All attempts on the base itself, also where no push of it is on record: that it passed in one of them counts. */
static void list_on_base(
    const struct attribution_case *c, size_t job, const char *sha, struct base_jobs *l)
{
	const struct job_name *j = &c->jobs[job];

	take_base_jobs(l, job,
	    db_rows(c->d,
		"SELECT 0, x.head_sha, j.id, j.n_tests FROM change x CROSS JOIN job j ON "
		"j.change_id = x.id"
		" AND j.accelerator = ?3 AND j.workflow = ?4 AND j.name = ?5 AND j.runner = ?6 AND "
		"j.status = 'completed'"
		" AND j.digest IS NOT NULL WHERE x.repository_key = ?1 AND x.head_sha = ?2 AND "
		"x.kind = 'push'"
		" ORDER BY j.id DESC LIMIT ?7",
		V_TEXT(c->key.text), V_TEXT(sha), V_TEXT(c->accelerator), V_TEXT(j->workflow),
		V_TEXT(j->name), V_TEXT(j->runner), V_INT(ATTEMPTS_MAX)),
	    0);
}

enum { BASE_MAX = OLDER_MAX + NEWER_MAX + 1 };

/* One more outcome on a commit of the branch. Commits come newest first, except that experiments on the base come last. */
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
	} else if (at->outcome == BASE_SKIPPED) {
		*at = *run;
	} else if (run->outcome != BASE_SKIPPED) {
		bool was_green = at->outcome == BASE_GREEN;

		if (at->outcome == run->outcome) {
			bool was_alike =
				 !was_green && failure_marks_are_alike(&at->mark, &f->facts.mark),
			     is_alike =
				 !was_green && failure_marks_are_alike(&run->mark, &f->facts.mark);

			/* an experiment that is red in other words proves nothing of this failure */
			if (is_alike == was_alike)
				at->is_experiment |= run->is_experiment;
			else if (is_alike)
				at->is_experiment = run->is_experiment;
			at->varies |= is_alike && failure_marks_are_alike(&at->mark, &run->mark) &&
				      at->mark.numbers != run->mark.numbers;
			/* of two reds the one that is like this failure says more */
			if (is_alike) {
				at->mark = run->mark;
				at->job = run->job;
			}
		} else {
			at->outcome = BASE_MIXED;
			at->is_experiment |= run->is_experiment;
			if (was_green)
				at->mark = run->mark;
		}
	}
	f->facts.base = f->base;
}

void attribution_add_base(
    struct attribution_case *c, struct red_failure *f, const struct base_run *run)
{
	struct base_run added = *run;

	if (run->outcome == BASE_RED && failure_marks_are_alike(&run->mark, &f->facts.mark) &&
	    attribution_is_outage(c, run->mark.key, run->job)) {
		added.outcome = BASE_SKIPPED;
		added.is_experiment = false;
	}
	add_base(f, &added);
}

static void read_base_job(struct attribution_case *c, const struct base_job *b)
{
	const struct job_name *j = &c->jobs[b->run.job];

	attribution_read_run(c, &b->run);
	for (size_t i = 0; i < j->n_failures; i++) {
		struct red_failure *f = &c->failures[j->first_failure + i];
		struct base_run run = {
		    .mark = f->seen.mark, .distance = b->distance, .job = b->run.id};

		memcpy(run.sha, b->sha, sizeof(run.sha));
		run.outcome = f->seen.has_red    ? BASE_RED
			      : f->seen.has_pass ? BASE_GREEN
						 : BASE_SKIPPED;
		if (f->seen.has_red || f->seen.has_pass || f->seen.has_skip)
			attribution_add_base(c, f, &run);
	}
}

#define TAKES_BACK(title)                                                                          \
	"(" title " LIKE '%revert%' OR " title " LIKE '%reland%' OR " title " LIKE '%re-land%'"    \
	" OR " title " LIKE '%reapply%' OR " title " LIKE '%back out%' OR " title                  \
	" LIKE '%backout%')"

/* Between the nearest tested commits around the base something may have gone and come back: two commits there have titles
 * that say that they revert or re-land something, or one has and names another commit there. */
static bool has_revert_near(
    const struct attribution_case *c, const struct base_jobs *l, int64_t base_position)
{
	int older = 0, newer = 0;

	for (size_t i = l->n; i-- > 0;) {
		if (l->at[i].distance > 0 && (!older || l->at[i].distance < older))
			older = l->at[i].distance;
		if (l->at[i].distance < 0 && (!newer || l->at[i].distance > newer))
			newer = l->at[i].distance;
	}
	return db_has(c->d,
	    "SELECT 1 FROM branch_commit a CROSS JOIN branch_commit b ON b.repository_key = ?1 AND "
	    "b.ref = ?2"
	    " AND b.position > ?3 AND b.position <= ?4 AND b.position <> a.position WHERE "
	    "a.repository_key = ?1"
	    " AND a.ref = ?2 AND a.position > ?3 AND a.position <= ?4 AND " TAKES_BACK(
		"a.title") " AND (" TAKES_BACK("b.title") " OR (b.title <> '' AND instr(a.title, "
							  "b.title) > 0)) LIMIT 1",
	    V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(base_position - older),
	    V_INT(base_position - newer));
}

static void read_base_of_job(
    struct attribution_case *c, size_t job, const char *sha, int64_t position)
{
	struct base_jobs l = {.n = 0};
	const struct job_name *j = &c->jobs[job];
	bool has_revert = false;

	if (position >= 0) {
		list_newer(c, job, position, &l);
		list_older(c, job, position, &l);
		has_revert = l.n > 0 && has_revert_near(c, &l, position);
	}
	list_on_base(c, job, sha, &l);
	for (size_t i = 0; i < l.n; i++)
		read_base_job(c, &l.at[i]);
	for (size_t i = 0; i < j->n_failures; i++)
		c->failures[j->first_failure + i].facts.has_revert_near = has_revert;
}

/* The commit that the change is compared with, and its position on the branch (-1: not known there). NULL: none is
 * known. free(). */
static char *find_base(const struct attribution_case *c, int64_t *ret_position)
{
	if (!c->is_push) {
		/* Its head as its merge base: it has landed as it is, and a failure there is its own. */
		if (!c->merge_base_sha || strcmp(c->merge_base_sha, c->head_sha) == 0)
			return NULL;
		*ret_position = branch_position(c->d, c->key.text, c->ref, c->merge_base_sha);
		return xstrdup(c->merge_base_sha);
	}
	*ret_position = branch_position(c->d, c->key.text, c->ref, c->head_sha) - 1;
	return db_text(c->d,
	    "SELECT sha FROM branch_commit WHERE repository_key = ?1 AND ref = ?2 AND position = "
	    "?3",
	    V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(*ret_position));
}

void attribution_read_base_runs(struct attribution_case *c)
{
	int64_t position = -1;
	char *sha = find_base(c, &position);

	for (size_t i = 0; i < c->n_failures; i++)
		c->failures[i].facts.is_base_known = sha != NULL;
	for (size_t job = 0; sha && job < c->n_jobs; job++)
		read_base_of_job(c, job, sha, position);
	free(sha);
}

/* ---- what landed between the runs of the branch ---- */

struct stretch { /* of commits: behind the first, up to the last */
	int64_t first, last;
	bool is_green_first;
};

struct own_commits {      /* in a stretch */
	bool has_landing; /* one that names this pull request */
	bool has_commit;  /* one of the same author */
};

/* From the newest green run to the oldest red one behind it, or as far as the runs go back. False: none is red. */
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
	ret->first = ret->is_green_first ? base_position - f->base[i].distance
					 : ret->last - f->facts.max_distance;
	return true;
}

/* An author's commits count only where it is known when the branch broke. An author who is not known may be the same. */
static struct own_commits own_commits(const struct attribution_case *c, const struct stretch *s)
{
	struct own_commits own = {.has_landing = false};
	struct rows *r = db_rows(c->d,
	    "SELECT ?6 > 0 AND (title GLOB '*#' || ?6 OR title GLOB '*#' || ?6 || '[^0-9]*'),"
	    " ?7 AND (COALESCE(author, '') = '' OR COALESCE(?5, '') = '' OR lower(author) = "
	    "lower(?5))"
	    " FROM branch_commit"
	    " WHERE repository_key = ?1 AND ref = ?2 AND position > ?3 AND position <= ?4",
	    V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(s->first), V_INT(s->last), V_TEXT(c->author),
	    V_INT(c->number), V_INT(s->is_green_first));

	while (rows_next(r)) {
		own.has_landing |= rows_int(r, 0) > 0;
		own.has_commit |= rows_int(r, 1) > 0;
	}
	return own;
}

/* The stretch between the nearest runs on both sides of the merge base. */
static bool find_gap(const struct red_failure *f, int64_t base_position, struct stretch *ret)
{
	const struct base_run *older = NULL, *newer = NULL;

	for (size_t i = f->facts.n_base; i-- > 0;) {
		const struct base_run *run = &f->base[i];

		if (run->distance > 0 && (!older || run->distance < older->distance))
			older = run;
		if (run->distance < 0 && (!newer || run->distance > newer->distance))
			newer = run;
	}
	if (!older || !newer)
		return false;
	ret->first = base_position - older->distance;
	ret->last = base_position - newer->distance;
	return true;
}

/* The files of a landed commit are those that are known of itself, or of the pull request that its title names last. */
static bool has_related_commit(const struct attribution_case *c, const struct stretch *s)
{
	return db_has(c->d,
	    "WITH landed AS (SELECT sha, title FROM branch_commit WHERE repository_key = ?1 AND "
	    "ref = ?2 AND position > ?3 AND position <= ?4),"
	    " own AS (SELECT e.value AS path FROM change_files g, json_each(g.files) e WHERE "
	    "g.repository_key = ?1 AND g.head_sha = ?5)"
	    " SELECT 1 FROM landed l WHERE EXISTS (SELECT 1 FROM pull p WHERE p.repository_key = "
	    "?1 AND p.number = ?6 AND p.title LIKE '%revert%' AND l.title <> '' AND "
	    "instr(p.title, l.title) > 0) OR EXISTS (SELECT 1 FROM change_files g, "
	    "json_each(g.files) e WHERE g.repository_key = ?1 AND g.head_sha = l.sha AND e.value "
	    "IN (SELECT path FROM own)) OR EXISTS (SELECT 1 FROM pull_head h CROSS JOIN change x "
	    "ON x.id = h.change_id CROSS JOIN change_files g ON g.repository_key = ?1 AND "
	    "g.head_sha = x.head_sha, json_each(g.files) e WHERE h.repository_key = ?1 AND "
	    "h.number = CASE WHEN l.title LIKE '%(#%)' THEN CAST(substr(l.title, "
	    "instr(l.title, '(#') + 2) AS INTEGER) END AND e.value IN (SELECT path FROM own)) "
	    "LIMIT 1",
	    V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(s->first), V_INT(s->last),
	    V_TEXT(c->head_sha), V_INT(c->number));
}

void attribution_read_landed(struct attribution_case *c)
{
	struct stretch last = {.first = -1}, last_gap = {.first = -1}, s;
	struct own_commits own = {.has_landing = false};
	bool was_related = false;
	int64_t position;

	if (c->is_push || !c->merge_base_sha)
		return;
	position = branch_position(c->d, c->key.text, c->ref, c->merge_base_sha);
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
		}
	}
}
