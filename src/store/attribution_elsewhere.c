/* The same failure on other changes: how often others fail so, and which of these failures were proved to be flaky.
 * What is not known counts against an excuse. */
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "model/trigger.h"
#include "store/attribution_facts.h"
#include "store/branch_commits.h"

enum {
	ROWS_MAX = 50,        /* failures of one test, the newest */
	OTHERS_MAX = 100,     /* changes looked at for all failures together */
	RUNS_MAX = 150,       /* of one accelerator, the newest, for a rate */
	RATES_MAX = 100,      /* failures of one report that get a rate */
	QUESTIONS_MAX = 4000, /* about failures elsewhere, for all of one report */
};

/* ---- other changes ---- */

bool attribution_is_same_author(const char *a, const char *b)
{
	return !a || !b || strcasecmp(a, b) == 0;
}

struct other {
	int64_t id;
	bool is_pull, is_on_branch;
	bool is_related; /* of the same author or PR, or with a file in common */
	bool has_other_files;
	char *author, *base_sha; /* base_sha: its merge base, or a pushed commit itself */
	json_t *files;           /* as keys; NULL: not known */
};
struct others {
	json_t *files; /* of this change */
	struct other at[OTHERS_MAX];
	size_t n;
	int n_rates, n_questions;
};

static json_t *read_files(const struct attribution_case *c, const char *head_sha)
{
	char *text = db_text(c->d,
	    "SELECT files FROM change_files WHERE repository_key = ?1 AND head_sha = ?2",
	    V_TEXT(c->key.text), V_TEXT(head_sha));
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

static void read_other(
    const struct attribution_case *c, const struct others *o, int64_t id, struct other *ret)
{
	char *head = NULL;
	bool is_own_pull = false;
	struct rows *r = db_rows(c->d,
	    "SELECT kind, author, COALESCE(base_ref, ref), merge_base_sha, head_sha, EXISTS "
	    "(SELECT 1 FROM pull_head h"
	    " WHERE h.change_id = x.id AND h.number = ?2 AND h.repository_key = x.repository_key) "
	    "FROM change x"
	    " WHERE id = ?1",
	    V_INT(id), V_INT(c->number));

	*ret = (struct other){.id = id};
	if (rows_next(r)) {
		ret->is_pull = strcmp(rows_text(r, 0), "pull_request") == 0;
		ret->author = rows_dup(r, 1);
		ret->is_on_branch = strcmp(branch_name(rows_text(r, 2)), c->ref) == 0;
		ret->base_sha = rows_dup(r, ret->is_pull ? 3 : 4);
		head = rows_dup(r, 4);
		is_own_pull = rows_int(r, 5);
	}
	rows_end(r);
	if (ret->is_pull && head)
		ret->files = read_files(c, head);
	ret->has_other_files = o->files && ret->files && !have_common_file(o->files, ret->files);
	ret->is_related = is_own_pull || attribution_is_same_author(ret->author, c->author) ||
			  have_common_file(o->files, ret->files);
	free(head);
}

/* NULL: there are too many. */
static const struct other *find_other(
    const struct attribution_case *c, struct others *o, int64_t id)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->at[i].id == id)
			return &o->at[i];
	if (o->n == OTHERS_MAX)
		return NULL;
	read_other(c, o, id, &o->at[o->n]);
	return &o->at[o->n++];
}

/* ---- the same failure on other changes ---- */

struct elsewhere {
	struct attribution_case *c;
	struct others *others;
	struct red_failure *f;
	struct {
		int64_t change_id, job_id;
		const struct other *other; /* NULL: this change, or one too many */
	} rows[ROWS_MAX];                  /* newest first, each change once */
	size_t n;
};

static void read_rows(struct elsewhere *e)
{
	const struct attribution_case *c = e->c;
	const struct job_name *j = &c->jobs[e->f->job];
	struct rows *r = db_rows(c->d,
	    "SELECT f.change_id, f.job_id FROM failure f CROSS JOIN job j ON j.id = f.job_id AND "
	    "j.workflow = ?6"
	    " AND j.name = ?7 AND j.runner = ?8 WHERE f.accelerator = ?1 AND f.test_id = ?2 AND "
	    "f.key = ?3"
	    " AND f.at_ms >= ?4 ORDER BY f.at_ms DESC LIMIT ?5",
	    V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->f->facts.mark.key),
	    V_INT(c->now_ms - c->window_ms), V_INT(ROWS_MAX), V_TEXT(j->workflow), V_TEXT(j->name),
	    V_TEXT(j->runner));

	while (rows_next(r)) {
		size_t i = 0;

		while (i < e->n && e->rows[i].change_id != rows_int(r, 0))
			i++;
		if (i < e->n || rows_int(r, 0) == c->change_id)
			continue;
		e->rows[e->n].change_id = rows_int(r, 0);
		e->rows[e->n++].job_id = rows_int(r, 1);
	}
	for (size_t i = 0; i < e->n; i++)
		e->rows[i].other = find_other(c, e->others, e->rows[i].change_id);
}

/* On one commit of that change the job failed and passed: another attempt of the failed job is what counts and passed,
 * or the cell was shown to be flaky by a run of its own. */
static bool is_proved(const struct elsewhere *e, size_t i)
{
	const struct attribution_case *c = e->c;

	return db_has(c->d,
	    "SELECT 1 FROM verdict v JOIN job a ON a.id = v.job_id JOIN job b ON b.id = ?4 WHERE "
	    "v.change_id = ?1"
	    " AND v.accelerator = ?2 AND v.test_id = ?3 AND ((v.status = 'PASS' AND b.is_current = "
	    "0"
	    "   AND a.workflow = b.workflow AND a.name = b.name AND a.runner = b.runner)"
	    "  OR (v.attribution = 'FLAKY' AND EXISTS (SELECT 1 FROM job p JOIN change x ON x.id = "
	    "p.change_id"
	    "   WHERE p.id = v.evidence_job AND (x.id = ?1 OR EXISTS (SELECT 1 FROM experiment t "
	    "WHERE t.id = x.experiment_id"
	    "    AND t.change_id = ?1)))))",
	    V_INT(e->rows[i].change_id), V_TEXT(c->accelerator), V_INT(e->f->test_id),
	    V_INT(e->rows[i].job_id));
}

/* Whether the same job passed the test on the other's merge base, or on the nearest tested commit before it. */
static bool was_green_before(const struct elsewhere *e, const struct other *o)
{
	const struct attribution_case *c = e->c;
	const struct job_name *j = &c->jobs[e->f->job];
	int64_t position =
	    branch_position(c->d, c->key.text, c->ref, o->base_sha ? o->base_sha : "") -
	    !o->is_pull;
	char *status;
	bool is_green;

	if (position < 0)
		return false;
	status = db_text(c->d,
	    "SELECT r.status FROM branch_commit b CROSS JOIN change x ON x.repository_key = "
	    "b.repository_key"
	    " AND x.head_sha = b.sha AND x.kind = 'push' CROSS JOIN job j ON j.change_id = x.id"
	    " AND j.accelerator = ?5 AND j.workflow = ?6 AND j.name = ?7 AND j.is_current = 1 AND "
	    "j.runner = ?8"
	    " CROSS JOIN result r INDEXED BY result_of_test ON r.job_id = j.id AND r.test_id = ?9 "
	    "WHERE b.repository_key = "
	    "?1 AND b.ref = ?2"
	    " AND b.position >= ?3 AND b.position <= ?4 ORDER BY b.position DESC LIMIT 1",
	    V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(position - c->distance), V_INT(position),
	    V_TEXT(c->accelerator), V_TEXT(j->workflow), V_TEXT(j->name), V_TEXT(j->runner),
	    V_INT(e->f->test_id));
	is_green = str_eq(status, "PASS");
	free(status);
	return is_green;
}

/* Two changes of one author or with a file in common may hold the same mistake: they are one witness. */
static bool are_related(const struct other *a, const struct other *b)
{
	return attribution_is_same_author(a->author, b->author) ||
	       have_common_file(a->files, b->files);
}

static bool is_independent(
    const struct elsewhere *e, size_t i, const size_t *proved, size_t n_proved)
{
	for (size_t k = 0; k < e->n; k++)
		if (e->rows[k].other && e->rows[k].other->is_related &&
		    are_related(e->rows[k].other, e->rows[i].other))
			return false;
	for (size_t k = 0; k < n_proved; k++)
		if (are_related(e->rows[proved[k]].other, e->rows[i].other))
			return false;
	return true;
}

static bool may_be_witness(const struct other *o)
{
	return !o->is_related && o->is_on_branch && (o->has_other_files || !o->is_pull);
}

static void count_others(const struct elsewhere *e)
{
	struct attribution_facts *facts = &e->f->facts;
	size_t proved[ROWS_MAX], n_proved = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct other *o = e->rows[i].other;

		if (!o || o->is_related || ++e->others->n_questions > QUESTIONS_MAX)
			continue;
		facts->n_seen += o->is_pull &&
				 !db_has(e->c->d,
				     "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = "
				     "?2 AND test_id = "
				     "?3 AND attribution = 'BASE'",
				     V_INT(o->id), V_TEXT(e->c->accelerator), V_INT(e->f->test_id));
		if (may_be_witness(o) && is_proved(e, i) &&
		    is_independent(e, i, proved, n_proved) && was_green_before(e, o))
			proved[n_proved++] = i;
	}
	facts->n_proved = (int)n_proved;
}

/* Of the newest runs of other people that have the test: how many, and in how many of them it failed so. */
static struct rate read_rate(const struct elsewhere *e)
{
	const struct attribution_case *c = e->c;
	struct rate rate = {.n = 0};
	struct rows *r = db_rows(c->d,
	    "WITH newest AS (SELECT change_id FROM run WHERE accelerator = ?1 ORDER BY ended_ms "
	    "DESC LIMIT ?5),"
	    " failed AS (SELECT DISTINCT change_id FROM failure WHERE accelerator = ?1 AND test_id "
	    "= ?2 AND key = ?3)"
	    " SELECT COUNT(*), SUM(n.change_id IN failed) FROM newest n CROSS JOIN change x ON "
	    "x.id = n.change_id"
	    " CROSS JOIN verdict v ON v.change_id = n.change_id AND v.accelerator = ?1 AND "
	    "v.test_id = ?2"
	    " WHERE v.status IN ('PASS', 'FAIL', 'ERROR') AND lower(x.author) IS NOT lower(?4) AND "
	    "x.id <> ?6",
	    V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->f->facts.mark.key),
	    V_TEXT(c->author), V_INT(RUNS_MAX), V_INT(c->change_id));

	if (rows_next(r)) {
		rate.n = (int)rows_int(r, 0);
		rate.n_hits = (int)rows_int(r, 1);
	}
	rows_end(r);
	return rate;
}

/* Whether a change of this author, or one that touches the same files, failed so before anybody else's did, and may
 * have landed. A superseded head is as closed as the PR that it was for. */
static bool may_be_own(const struct elsewhere *e)
{
	const struct attribution_case *c = e->c;
	struct rows *r = db_rows(c->d,
	    "SELECT x.id, x.author, x.head_sha, x.kind = 'push' OR x.state = 'closed' OR EXISTS"
	    "  (SELECT 1 FROM pull_head h JOIN pull p ON p.repository_key = h.repository_key"
	    "   AND p.number = h.number WHERE h.change_id = x.id AND p.state <> 'open')"
	    " FROM failure f JOIN change x ON x.id = f.change_id WHERE f.accelerator = ?1"
	    " AND f.test_id = ?2 AND f.key = ?3 ORDER BY f.at_ms LIMIT ?4",
	    V_TEXT(c->accelerator), V_INT(e->f->test_id), V_INT(e->f->facts.mark.key),
	    V_INT(ROWS_MAX));
	bool is_first = true, may_have_landed = false;

	while (!may_have_landed && rows_next(r)) {
		bool is_own = rows_int(r, 0) == c->change_id ||
			      attribution_is_same_author(
				  rows_is_null(r, 1) ? NULL : rows_text(r, 1), c->author);

		if (!is_own && e->others->files && (is_first || rows_int(r, 3))) {
			json_t *files = read_files(c, rows_text(r, 2));

			is_own = have_common_file(e->others->files, files);
			json_decref(files);
		}
		if (is_first && !is_own)
			break;
		is_first = false;
		may_have_landed = is_own && rows_int(r, 0) != c->change_id && rows_int(r, 3);
	}
	rows_end(r);
	return may_have_landed;
}

/* Whatever is known of others. */
static bool is_decided(const struct attribution_facts *f, enum attribution a)
{
	struct attribution_facts worst = *f;
	struct attribution_result r;

	worst.n_seen = worst.n_proved = 1;
	r = attribute(&worst);
	return r.attribution == a && !r.needs;
}

void attribution_read_elsewhere(struct attribution_case *c)
{
	struct others others = {.files = c->is_push ? NULL : read_files(c, c->head_sha)};

	for (size_t i = 0; i < c->n_failures && i < COMPARED_MAX; i++) {
		struct elsewhere e = {.c = c, .others = &others, .f = &c->failures[i]};
		struct attribution_facts *facts = &e.f->facts;

		if (!facts->mark.key || is_decided(facts, ATTRIBUTION_KNOWN))
			continue;
		facts->may_be_own = may_be_own(&e);
		if (is_decided(facts, ATTRIBUTION_BASE))
			continue;
		read_rows(&e);
		count_others(&e);
		if (facts->passed_here_job && facts->here.n_hits > 1 &&
		    others.n_rates++ < RATES_MAX)
			facts->elsewhere = read_rate(&e);
	}
	for (size_t i = 0; i < others.n; i++) {
		free(others.at[i].author);
		free(others.at[i].base_sha);
		json_decref(others.at[i].files);
	}
	json_decref(others.files);
}
