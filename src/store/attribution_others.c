/* The same failure on other changes, as far as it can be evidence: of somebody else, on an upstream
 * branch, with files that have nothing to do with this change's, and not from a base that was broken
 * itself. What is not known counts as if it spoke against it. */
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "model/failure_text.h"
#include "model/trigger.h"
#include "store/attribution_nearest.h"
#include "store/branch_commits.h"

enum {
	ROWS_MAX = 50,        /* failures of one cell, the newest */
	OTHERS_MAX = 100,     /* changes looked at for one accelerator's cells */
	HEADS_MAX = 6,        /* of the same PR */
	QUESTIONS_MAX = 4000, /* about bases, for all cells together */
};

struct other {
	int64_t id;
	bool is_pull, is_other_author, is_on_branch, is_own_pull;
	bool has_other_files;
	bool is_kin; /* of the same author or PR, or with a file in common */
	char *author;
	json_t *files;         /* as keys; NULL: not known */
	char *ref;             /* the branch it is for */
	int64_t base_position; /* of its merge base on that branch; -1: not known */
};

struct failed_row {
	int64_t change_id, job_id, at_ms;
	const struct other *other; /* NULL: this change, or one too many */
};

struct looking {
	struct attribution_case *c;
	json_t *files; /* of this change, as keys; NULL: not known */
	struct other others[OTHERS_MAX];
	size_t n_others;
	int n_questions;
	struct failed_row rows[ROWS_MAX]; /* of the cell in hand, newest first */
	size_t n_rows;
};

/* ---- files ---- */

static json_t *read_files(struct attribution_case *c, const char *head_sha)
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

static bool are_apart(const json_t *a, json_t *b)
{
	const char *path;
	json_t *v;

	if (!a || !b)
		return false;
	json_object_foreach(b, path, v) if (json_object_get(a, path)) return false;
	return true;
}

static bool have_common(json_t *a, json_t *b)
{
	return a && b && !are_apart(a, b);
}

/* ---- who else ---- */

static bool is_same_author(const char *a, const char *b)
{
	return !a || !b || strcasecmp(a, b) == 0;
}

static bool is_upstream_branch(struct attribution_case *c, const char *ref)
{
	return db_has(c->d,
	    "SELECT 1 FROM branch_commit WHERE repository_key = ?1 AND ref = ?2 LIMIT 1",
	    V_TEXT(c->key.text), V_TEXT(ref));
}

static void read_other(struct looking *l, int64_t id, struct other *ret)
{
	struct attribution_case *c = l->c;
	char *merge_base = NULL, *head = NULL;
	struct rows *r = db_rows(c->d,
	    "SELECT kind, author, COALESCE(base_ref, ref), merge_base_sha, head_sha,"
	    " EXISTS (SELECT 1 FROM pull_head h WHERE h.change_id = x.id AND h.number = ?2"
	    "  AND h.repository_key = x.repository_key) FROM change x WHERE id = ?1",
	    V_INT(id), V_INT(c->number));

	*ret = (struct other){.id = id, .base_position = -1};
	if (rows_next(r)) {
		ret->is_pull = strcmp(rows_text(r, 0), "pull_request") == 0;
		ret->author = rows_dup(r, 1);
		ret->ref = xstrdup(branch_name(rows_text(r, 2)));
		merge_base = rows_dup(r, 3);
		head = rows_dup(r, 4);
		ret->is_own_pull = rows_int(r, 5);
	}
	rows_end(r);
	ret->is_other_author = !is_same_author(ret->author, c->author);
	if (ret->is_pull) {
		ret->is_on_branch = is_upstream_branch(c, ret->ref);
		if (merge_base)
			ret->base_position =
			    branch_position(c->d, c->key.text, ret->ref, merge_base);
		ret->files = read_files(c, head);
		ret->has_other_files = are_apart(l->files, ret->files);
	}
	ret->is_kin =
	    !ret->is_other_author || ret->is_own_pull || have_common(l->files, ret->files);
	free(merge_base);
	free(head);
}

static void other_release(struct other *o)
{
	free(o->ref);
	free(o->author);
	json_decref(o->files);
}

/* NULL: there are too many. */
static struct other *find_other(struct looking *l, int64_t id)
{
	for (size_t i = 0; i < l->n_others; i++)
		if (l->others[i].id == id)
			return &l->others[i];
	if (l->n_others == OTHERS_MAX)
		return NULL;
	read_other(l, id, &l->others[l->n_others]);
	return &l->others[l->n_others++];
}

/* ---- the facts ---- */

/* Where the other's base is not known, a branch that failed so lately explains it as well. */
static bool has_branch_failed_so(const struct looking *l, const struct red_cell *cell)
{
	const struct attribution_case *c = l->c;

	return db_has(c->d,
	    "SELECT 1 FROM failure f JOIN change x ON x.id = f.change_id WHERE f.accelerator = ?1"
	    " AND f.test_id = ?2 AND f.key = ?3 AND x.kind = 'push' LIMIT 1",
	    V_TEXT(c->accelerator), V_INT(cell->test_id), V_INT(cell->facts.mark.key));
}

static void read_rows(struct looking *l, const struct red_cell *cell)
{
	const struct attribution_case *c = l->c;
	struct rows *r = db_rows(c->d,
	    "SELECT change_id, job_id, at_ms FROM failure WHERE accelerator = ?1 AND test_id = ?2"
	    " AND key = ?3 AND at_ms >= ?4 AND status = ?5 ORDER BY at_ms DESC LIMIT ?6",
	    V_TEXT(c->accelerator), V_INT(cell->test_id), V_INT(cell->facts.mark.key),
	    V_INT(c->now_ms - c->window_ms), V_TEXT(test_status_name(cell->facts.mark.status)),
	    V_INT(ROWS_MAX));

	l->n_rows = 0;
	while (rows_next(r))
		l->rows[l->n_rows++] =
		    (struct failed_row){rows_int(r, 0), rows_int(r, 1), rows_int(r, 2), NULL};
	for (size_t i = 0; i < l->n_rows; i++)
		if (l->rows[i].change_id != c->change_id)
			l->rows[i].other = find_other(l, l->rows[i].change_id);
}

/* Newest first: a change that was counted already stands before i. */
static bool is_seen(const struct looking *l, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (l->rows[k].change_id == l->rows[i].change_id)
			return true;
	return false;
}

/* It may hold what a kin of this change holds: both of one stack, or a second try of one mistake. */
static bool is_kin_of_kin(const struct looking *l, const struct other *o)
{
	for (size_t i = 0; i < l->n_rows; i++) {
		const struct other *kin = l->rows[i].other;

		if (kin && kin->is_kin &&
		    (is_same_author(kin->author, o->author) || have_common(kin->files, o->files)))
			return true;
	}
	return false;
}

static void add_similar(
    struct looking *l, struct red_cell *cell, const struct failed_row *row, const struct other *o)
{
	enum base_state base;
	struct similar_failure *s;

	if (!o->is_other_author || !o->has_other_files || !o->is_on_branch || o->is_own_pull ||
	    cell->has_witness || l->n_questions >= QUESTIONS_MAX || is_kin_of_kin(l, o))
		return;
	l->n_questions++;
	base = attribution_base_state(l->c, o->ref, o->base_position, cell);
	cell->similar =
	    xrealloc(cell->similar, (cell->facts.n_similar + 1) * sizeof(*cell->similar));
	memmove(cell->similar + 1, cell->similar, cell->facts.n_similar * sizeof(*cell->similar));
	cell->facts.n_similar++;
	s = cell->similar; /* oldest first */
	*s = (struct similar_failure){
	    .job = row->job_id,
	    .change_id = row->change_id,
	    .at_ms = row->at_ms,
	    .is_other_author = true,
	    .has_other_files = true,
	    .is_base_green = base == BASE_IS_GREEN,
	    .is_on_broken_base =
		base == BASE_IS_BROKEN || (base == BASE_NOT_KNOWN && has_branch_failed_so(l, cell)),
	};
	cell->has_witness = s->is_base_green;
}

/* Another attempt of the failed job passed, and is what counts; or the cell there was found out to
 * be flaky by such a one. */
static bool is_mixed(
    const struct looking *l, const struct red_cell *cell, const struct failed_row *row)
{
	const struct attribution_case *c = l->c;

	return db_has(c->d,
	    "SELECT 1 FROM verdict v JOIN job a ON a.id = v.job_id JOIN job b ON b.id = ?4"
	    " WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.test_id = ?3"
	    " AND ((v.status = 'PASS' AND b.is_current = 0 AND a.workflow = b.workflow"
	    "   AND a.name = b.name AND a.runner = b.runner)"
	    "  OR (v.attribution = 'FLAKY' AND EXISTS (SELECT 1 FROM job e"
	    "   WHERE e.id = v.evidence_job AND e.change_id = ?1)))",
	    V_INT(row->change_id), V_TEXT(c->accelerator), V_INT(cell->test_id),
	    V_INT(row->job_id));
}

static void look_at_rows(struct looking *l, struct red_cell *cell)
{
	for (size_t i = 0; i < l->n_rows; i++) {
		const struct failed_row *row = &l->rows[i];
		const struct other *o = row->other;

		if (!o || is_seen(l, i))
			continue;
		if (!cell->facts.mixed_elsewhere_job && o->is_other_author && !o->is_own_pull &&
		    is_mixed(l, cell, row))
			cell->facts.mixed_elsewhere_job = row->job_id;
		add_similar(l, cell, row, o);
	}
}

static int count_rows(const struct looking *l, int64_t change_id)
{
	int n = 0;

	for (size_t i = 0; i < l->n_rows; i++)
		n += l->rows[i].change_id == change_id;
	return n;
}

/* Back over the PR's heads until one passed or failed otherwise. */
static int count_in_row(const struct looking *l, const struct red_cell *cell)
{
	const struct attribution_case *c = l->c;
	int n = count_rows(l, c->change_id);
	struct rows *r = db_rows(c->d,
	    "SELECT h.change_id, v.status, v.message FROM pull_head h LEFT JOIN verdict v"
	    " ON v.change_id = h.change_id AND v.accelerator = ?3 AND v.test_id = ?4"
	    " WHERE h.repository_key = ?1 AND h.number = ?2 ORDER BY h.since_ms DESC LIMIT ?5",
	    V_TEXT(c->key.text), V_INT(c->number), V_TEXT(c->accelerator), V_INT(cell->test_id),
	    V_INT(HEADS_MAX));

	while (rows_next(r)) {
		struct nearest was = {.status = test_status_parse(rows_text(r, 1))};

		if (rows_int(r, 0) == c->change_id || rows_is_null(r, 1))
			continue;
		was.key = failure_text_key(rows_is_null(r, 2) ? NULL : rows_text(r, 2));
		if (nearest_is_green(&was) ||
		    (test_status_is_red(was.status) && !nearest_is_same(&was, cell)))
			break;
		n += count_rows(l, rows_int(r, 0));
	}
	rows_end(r);
	return n > 1 ? n : 1;
}

/* Whether what this author did, or what these files held, may have landed and failed so before it
 * failed so for anybody else. A superseded head is as closed as the PR that it was for. */
static bool is_first_on_own(const struct looking *l, const struct red_cell *cell)
{
	const struct attribution_case *c = l->c;
	struct rows *r = db_rows(c->d,
	    "SELECT x.id, x.author, x.head_sha, x.kind = 'push' OR x.state = 'closed' OR EXISTS"
	    "  (SELECT 1 FROM pull_head h JOIN pull p ON p.repository_key = h.repository_key"
	    "   AND p.number = h.number WHERE h.change_id = x.id AND p.state <> 'open')"
	    " FROM failure f JOIN change x ON x.id = f.change_id WHERE f.accelerator = ?1"
	    " AND f.test_id = ?2 AND f.key = ?3 ORDER BY f.at_ms LIMIT ?4",
	    V_TEXT(c->accelerator), V_INT(cell->test_id), V_INT(cell->facts.mark.key),
	    V_INT(ROWS_MAX));
	bool is_first = true, may_have_landed = false;

	while (!may_have_landed && rows_next(r)) {
		bool is_own =
		    rows_int(r, 0) == c->change_id ||
		    is_same_author(rows_is_null(r, 1) ? NULL : rows_text(r, 1), c->author);

		if (!is_own && l->files && (is_first || rows_int(r, 3))) {
			json_t *files = read_files(l->c, rows_text(r, 2));

			is_own = have_common(l->files, files);
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

void facts_of_others(struct attribution_case *c)
{
	struct looking l = {.c = c};
	int n_compared = 0;

	if (c->is_push)
		l.files = NULL; /* what a push changed is not on record */
	else
		l.files = read_files(c, c->head_sha);
	for (size_t i = 0; i < c->n && n_compared < CELLS_COMPARED_MAX; i++) {
		struct red_cell *cell = &c->cells[i];
		enum attribution so_far;

		if (!cell->facts.mark.key)
			continue;
		so_far = attribution_judge(c, cell).attribution;
		if (so_far == ATTRIBUTION_KNOWN || so_far == ATTRIBUTION_FLAKY)
			continue;
		n_compared++;
		cell->facts.is_first_seen_on_own = is_first_on_own(&l, cell);
		if (so_far == ATTRIBUTION_BASE && !attribution_is_doubtful(c, cell))
			continue;
		read_rows(&l, cell);
		cell->facts.n_in_row = count_in_row(&l, cell);
		look_at_rows(&l, cell);
	}
	for (size_t i = 0; i < l.n_others; i++)
		other_release(&l.others[i]);
	json_decref(l.files);
}
