/* The same failure on other changes: how often they fail in the same way, and which of these failures were proved to be
 * flaky. Unknown facts count against an excuse. */

#include "model/plan.h"
#include "store/branch_commits.h"
#include "verdict/attribution_facts.h"

enum {
	ROWS_MAX = 50,        /* failures of one test, the newest */
	OTHERS_MAX = 100,     /* other changes that are read for all failures together */
	RUNS_MAX = 150,       /* of one accelerator, the newest, for a rate */
	RATES_MAX = 100,      /* failures of one report that get a rate */
	QUESTIONS_MAX = 4000, /* about failures of other changes, for all failures of one report */
};

/* ---- other changes ---- */

bool attribution_is_same_author(const char *a, const char *b) { return !a || !b || strcasecmp(a, b) == 0; }

#define OTHER_CHANGE_RECORD(F, S)                                                                                      \
	F(S, BOOL, is_pull, NULL, "kind = 'pull_request'", "")                                                         \
	F(S, TEXT, author, NULL, "author", "")                                                                         \
	F(S, TEXT, ref, NULL, "COALESCE(base_ref, ref, '')", "")                                                       \
	F(S, TEXT, head_sha, NULL, "head_sha", "")                                                                     \
	F(S, TEXT, base_sha, NULL, "CASE kind WHEN 'pull_request' THEN merge_base_sha ELSE head_sha END",              \
	    "Its merge base, or a pushed commit itself.")                                                              \
	F(S, BOOL, is_own_pull, NULL,                                                                                  \
	    "EXISTS (SELECT 1 FROM pull_head h WHERE h.change_id = x.id AND h.number = ?2"                             \
	    " AND h.repository_key = x.repository_key)",                                                               \
	    "")
RECORD_LOCAL(other_change, OTHER_CHANGE_RECORD)
struct other {
	int64_t id;
	struct other_change change;
	bool is_on_branch;
	bool is_related; /* of the same author or PR, or with a file in common */
	bool has_other_files;
	json_t *files; /* as keys; NULL: not known */
};
struct others {
	json_t *files; /* of this change */
	struct other at[OTHERS_MAX];
	size_t n;
	int n_rates, n_questions;
};

static json_t *read_changed_files(const struct attribution_case *c, const char *head_sha)
{
	char *text = db_text(c->d, "SELECT files FROM change_files WHERE repository_key = ?1 AND head_sha = ?2",
	    V_TEXT(c->repository_key), V_TEXT(head_sha));
	json_t *list = NULL, *set = NULL, *item;
	size_t i;

	if (text && json_parse(text, strlen(text), &list, NULL) == 0 && json_array_size(list) > 0) {
		set = json_object();
		json_array_foreach(list, i, item) if (json_is_string(item))
		    json_object_set_new(set, json_string_value(item), json_true());
	}
	if (json_object_get(set, FILES_INCOMPLETE)) {
		json_decref(set);
		set = NULL;
	}
	json_decref(list);
	free(text);
	return set;
}

static bool have_common_file(json_t *a, json_t *b)
{
	const char *path;
	json_t *v;

	if (a && b)
		json_object_foreach(b, path, v) if (json_object_get(a, path)) return true;
	return false;
}

/* NULL: there are too many. */
static const struct other *find_other(const struct attribution_case *c, struct others *o, int64_t id)
{
	struct other *other;
	struct other_change *x;

	for (size_t i = 0; i < o->n; i++)
		if (o->at[i].id == id)
			return &o->at[i];
	if (o->n == OTHERS_MAX)
		return NULL;
	other = &o->at[o->n++];
	x = &other->change;
	*other = (struct other){.id = id};
	if (record_read_first(db_rows(c->d, RECORD_QUERY(OTHER_CHANGE_RECORD, "FROM change x WHERE id = ?1"), V_INT(id),
				  V_INT(c->number)),
		&other_change_record, x))
		other->is_on_branch = strcmp(branch_name(x->ref), c->ref) == 0;
	if (x->is_pull)
		other->files = read_changed_files(c, x->head_sha);
	other->has_other_files = o->files && other->files && !have_common_file(o->files, other->files);
	other->is_related = x->is_own_pull || attribution_is_same_author(x->author, c->author) ||
			    have_common_file(o->files, other->files);
	return other;
}

/* ---- the same failure on other changes ---- */

#define SAME_FAILURE_RECORD(F, S)                                                                                      \
	F(S, ID, change_id, NULL, "f.change_id", "")                                                                   \
	F(S, ID, job_id, NULL, "f.job_id", "")
struct same_failure {
	RECORD_MEMBERS(SAME_FAILURE_RECORD)
	const struct other *other; /* NULL: too many were read before it */
};
RECORD_DEFINE(same_failure, SAME_FAILURE_RECORD);

struct elsewhere {
	struct attribution_case *c;
	struct others *others;
	struct red_failure *f;
	struct same_failure rows[ROWS_MAX]; /* newest first, each change once */
	size_t n;
};

static void read_rows(struct elsewhere *e)
{
	const struct attribution_case *c = e->c;
	const struct job_name *j = &c->jobs[e->f->job];
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(SAME_FAILURE_RECORD,
		"FROM failure f CROSS JOIN job j ON j.id = f.job_id AND j.workflow = ?6"
		" AND j.name = ?7 AND j.runner = ?8 WHERE f.accelerator = ?1 AND f.test_id = ?2"
		" AND f.key = ?3 AND f.at_ms >= ?4 ORDER BY f.at_ms DESC, f.job_id DESC LIMIT ?5"),
	    V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->f->facts.mark.key), V_INT(c->now_ms - c->window_ms),
	    V_INT(ROWS_MAX), V_TEXT(j->workflow), V_TEXT(j->name), V_TEXT(j->runner));

	while (rows_next(r)) {
		struct same_failure *row = &e->rows[e->n];
		size_t i = 0;

		record_read(r, &same_failure_record, row);
		while (i < e->n && e->rows[i].change_id != row->change_id)
			i++;
		e->n += i == e->n && row->change_id != c->change_id;
	}
	for (size_t i = 0; i < e->n; i++)
		e->rows[i].other = find_other(c, e->others, e->rows[i].change_id);
}

/* The job failed and passed on one commit of that change: a later attempt of the failed job is current and passed, or a run
 * of that change showed that the cell is flaky. */
static bool is_proved(const struct elsewhere *e, size_t i)
{
	const struct attribution_case *c = e->c;

	return db_has(c->d,
	    "SELECT 1 FROM cell v CROSS JOIN job a ON a.id = v.job_id CROSS JOIN job b ON b.id = ?4 WHERE v.change_id "
	    "= ?1"
	    " AND v.accelerator = ?2 AND v.test_id = ?3 AND ((v.status = 'PASS' AND b.is_current = 0"
	    "   AND a.workflow = b.workflow AND a.name = b.name AND a.runner = b.runner)"
	    "  OR (v.attribution = 'FLAKY' AND EXISTS (SELECT 1 FROM job p JOIN change x ON x.id = p.change_id"
	    "   WHERE p.id = v.evidence_job AND (x.id = ?1 OR EXISTS"
	    "    (SELECT 1 FROM experiment t WHERE t.id = x.experiment_id AND t.change_id = ?1)))))",
	    V_INT(e->rows[i].change_id), V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->rows[i].job_id));
}

/* Whether the same job passed the test on the other's merge base, or on the nearest commit before it where the job has the test. A job
 * may have several results of the test: it passed only if none of them is red. */
static bool was_green_before(const struct elsewhere *e, const struct other *o)
{
	const struct attribution_case *c = e->c;
	const struct job_name *j = &c->jobs[e->f->job];
	const char *base_sha = o->change.base_sha ? o->change.base_sha : "";
	int64_t position = branch_position(c->d->view, c->repository_key, c->ref, base_sha) - !o->change.is_pull;
	int64_t is_green = -1; /* not known */
	struct rows *r;

	if (position < 0)
		return false;
	r = db_rows(c->d,
	    "SELECT j.id FROM branch_commit b CROSS JOIN change x"
	    "  ON x.repository_key = b.repository_key AND x.head_sha = b.sha AND x.kind = 'push'"
	    " CROSS JOIN job j ON j.change_id = x.id AND j.accelerator = ?5 AND j.workflow = ?6 AND j.name = ?7"
	    "  AND j.is_current = 1 AND j.runner = ?8"
	    " WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position >= ?3 AND b.position <= ?4"
	    " ORDER BY b.position DESC, j.id DESC",
	    V_TEXT(c->repository_key), V_TEXT(c->ref), V_INT(position - c->distance), V_INT(position),
	    V_TEXT(c->accelerator), V_TEXT(j->workflow), V_TEXT(j->name), V_TEXT(j->runner));
	while (is_green < 0 && rows_next(r))
		is_green = db_int(c->d, -1,
		    "SELECT CASE WHEN SUM(status = 'PASS') > 0 AND SUM(status IN ('FAIL', 'ERROR')) = 0 THEN 1 ELSE 0"
		    " END FROM job_test WHERE job_id = ?1 AND test_id = ?2 GROUP BY job_id",
		    V_INT(rows_key_number(r)), V_INT(e->f->test_id));
	rows_end(r);
	return is_green > 0;
}

/* Two changes of one author or with a common file may contain the same mistake, so they are one witness. */
static bool are_related(const struct other *a, const struct other *b)
{
	return attribution_is_same_author(a->change.author, b->change.author) || have_common_file(a->files, b->files);
}

/* Counts the changes of other authors that failed in the same way, and the witnesses among them: changes that prove the
 * test to be flaky. A witness belongs to the same branch, is independent of all related changes and of the other witnesses,
 * and was green before. A pull request also needs a known list of files without a file of this change. */
static void count_others(const struct elsewhere *e)
{
	struct attribution_facts *facts = &e->f->facts;
	size_t witnesses[ROWS_MAX], n_witnesses = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct other *o = e->rows[i].other;
		bool is_independent = true;

		if (!o || o->is_related || ++e->others->n_questions > QUESTIONS_MAX)
			continue;
		facts->n_seen += o->change.is_pull &&
				 !db_has(e->c->d,
				     "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND test_id = ?3"
				     " AND attribution = 'BASE'",
				     V_INT(o->id), V_TEXT(e->c->accelerator), V_INT(e->f->test_id));
		if (!o->is_on_branch || (o->change.is_pull && !o->has_other_files) || !is_proved(e, i))
			continue;
		for (size_t k = 0; k < e->n && is_independent; k++)
			is_independent =
			    !(e->rows[k].other && e->rows[k].other->is_related && are_related(e->rows[k].other, o));
		for (size_t k = 0; k < n_witnesses && is_independent; k++)
			is_independent = !are_related(e->rows[witnesses[k]].other, o);
		if (is_independent && was_green_before(e, o))
			witnesses[n_witnesses++] = i;
	}
	facts->n_proved = (int)n_witnesses;
}

#define RUNS_OF_TEST_RECORD(F, S)                                                                                      \
	F(S, INT, n, NULL, "COUNT(*)", "")                                                                             \
	F(S, INT, n_red, NULL, "SUM(n.change_id IN (SELECT change_id FROM failed))", "")
RECORD_LOCAL(runs_of_test, RUNS_OF_TEST_RECORD)

/* Of the newest runs of other authors that have the test: how many, and in how many it failed in the same way. */
static struct rate read_rate(const struct elsewhere *e)
{
	const struct attribution_case *c = e->c;
	struct runs_of_test runs = {0};
	struct rows *r = db_rows(c->d,
	    "WITH newest AS (SELECT change_id FROM run WHERE accelerator = ?1 ORDER BY ended_ms DESC, change_id DESC "
	    "LIMIT ?5),"
	    " failed AS (SELECT DISTINCT change_id FROM failure WHERE accelerator = ?1 AND test_id = ?2 AND key = ?3)"
	    " " RECORD_QUERY(RUNS_OF_TEST_RECORD,
		"FROM newest n CROSS JOIN change x ON x.id = n.change_id CROSS JOIN cell v"
		" ON v.change_id = n.change_id AND v.accelerator = ?1 AND v.test_id = ?2"
		" WHERE v.status IN ('PASS', 'FAIL', 'ERROR')"
		" AND lower(x.author) IS DISTINCT FROM lower(?4) AND x.id <> ?6"),
	    V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->f->facts.mark.key), V_TEXT(c->author),
	    V_INT(RUNS_MAX), V_INT(c->change_id));

	record_read_first(r, &runs_of_test_record, &runs);
	return (struct rate){.n = (int)runs.n, .n_hits = (int)runs.n_red};
}

#define FAILED_CHANGE_RECORD(F, S)                                                                                     \
	F(S, ID, id, NULL, "x.id", "")                                                                                 \
	F(S, TEXT, author, NULL, "x.author", "")                                                                       \
	F(S, BORROWED, head_sha, NULL, "x.head_sha", "")                                                               \
	F(S, BOOL, is_closed, NULL,                                                                                    \
	    "x.kind = 'push' OR x.state = 'closed' OR EXISTS"                                                          \
	    " (SELECT 1 FROM pull_head h JOIN pull p ON p.repository_key = h.repository_key"                           \
	    " AND p.number = h.number WHERE h.change_id = x.id AND p.state <> 'open')",                                \
	    "It may have landed.")
RECORD_LOCAL(failed_change, FAILED_CHANGE_RECORD)

/* Whether a change of this author, or one that touches the same files, was the first to fail in this way, and such a change
 * may have landed. A superseded head is as closed as its pull request. */
static bool may_be_own(const struct elsewhere *e)
{
	const struct attribution_case *c = e->c;
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(FAILED_CHANGE_RECORD,
		"FROM failure f JOIN change x ON x.id = f.change_id WHERE f.accelerator = ?1"
		" AND f.test_id = ?2 AND f.key = ?3 ORDER BY f.at_ms, f.job_id LIMIT ?4"),
	    V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->f->facts.mark.key), V_INT(ROWS_MAX));
	bool is_first = true, may_have_landed = false;

	while (!may_have_landed && rows_next(r)) {
		struct failed_change x;
		bool is_own;

		record_read(r, &failed_change_record, &x);
		is_own = x.id == c->change_id || attribution_is_same_author(x.author, c->author);
		record_release(&failed_change_record, &x);
		if (!is_own && e->others->files && (is_first || x.is_closed)) {
			json_t *files = read_changed_files(c, x.head_sha);

			is_own = have_common_file(e->others->files, files);
			json_decref(files);
		}
		if (is_first && !is_own)
			break;
		is_first = false;
		may_have_landed = is_own && x.id != c->change_id && x.is_closed;
	}
	rows_end(r);
	return may_have_landed;
}

/* Whether the rules give this cause whatever the facts about other changes are. */
static bool is_decided(const struct attribution_facts *f, enum attribution a)
{
	struct attribution_facts worst = *f;
	struct attribution_result r;

	worst.n_seen = worst.n_proved = 1;
	r = attribute(&worst);
	return r.attribution == a && !r.needs;
}

void fact_elsewhere(struct attribution_case *c)
{
	if (!c->others) {
		c->others = xcalloc(1, sizeof(*c->others));
		c->others->files = c->is_push ? NULL : read_changed_files(c, c->head_sha);
	}
	for (; c->next < c->n_failures && c->next < COMPARED_MAX && !attribution_must_pause(c); c->next++) {
		struct elsewhere e = {.c = c, .others = c->others, .f = &c->failures[c->next]};
		struct attribution_facts *facts = &e.f->facts;

		if (!facts->mark.key || is_decided(facts, ATTRIBUTION_KNOWN))
			continue;
		facts->may_be_own = may_be_own(&e);
		if (is_decided(facts, ATTRIBUTION_BASE))
			continue;
		read_rows(&e);
		count_others(&e);
		if (facts->passed_here_job && facts->here.n_hits > 1 && c->others->n_rates++ < RATES_MAX)
			facts->elsewhere = read_rate(&e);
	}
}

void others_free(struct others *o)
{
	for (size_t i = 0; o && i < o->n; i++) {
		record_release(&other_change_record, &o->at[i].change);
		json_decref(o->at[i].files);
	}
	if (o)
		json_decref(o->files);
	free(o);
}
