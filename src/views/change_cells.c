#include "views/change.h"

#include "db/cell_sets.h"
#include "db/record_rows.h"
#include "experiments/experiment_rows.h"
#include "text/table.h"
#include "verdict/attribution.h"
#include "views/record_json.h"

enum { KEY_PARTS = 4, KEY_MAX_BYTES = 1024, NAMES_READ_FIRST = 64 };

/* ---- the cells ---- */

#define IS_RED_IN_RUNNER                                                                                               \
	"EXISTS (SELECT 1 FROM job j WHERE j.change_id = v.change_id"                                                  \
	" AND j.accelerator = v.accelerator AND j.runner = e.runner AND j.is_current = 1"                              \
	" AND " TEST_IS_RED_IN_JOB("v.test_id", "v.job_id") ")"
/* An open experiment e of the cell's own change waits for a good machine (1) or not (0), and has a test x. */
#define OWN_EXPERIMENT(waits, condition)                                                                               \
	"EXISTS (SELECT 1 FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id"                          \
	" WHERE e.change_id = v.change_id AND e.accelerator = v.accelerator AND e.cause = 'auto'"                      \
	" AND e." EXPERIMENT_IS_OPEN " AND CASE WHEN " WAITS_FOR_GOOD_MACHINE " THEN 1 ELSE 0 END = " waits            \
	" AND " condition ")"
#define IS_BEHIND_SAMPLE                                                                                               \
	"x.waits = 1 AND (v.needs & CASE e.side WHEN 'head' THEN 1 ELSE 2 END) <> 0 "                                  \
	"AND " IS_RED_IN_RUNNER
/* A sample stands for all tests that need a good machine: they follow where it passes, and wait where it waits. */
#define OWN_RERUN(waits)                                                                                               \
	"(" OWN_EXPERIMENT(waits, "x.test_id = v.test_id") " OR ((v.needs & 4) <> 0"                                   \
							   " AND " OWN_EXPERIMENT(waits, IS_BEHIND_SAMPLE) "))"
#define RERUN_OF_ANOTHER                                                                                               \
	ANOTHER_RUNS_ON_BASE("v.change_id", "v.accelerator", "c.merge_base_sha", "v.test_id", IS_RED_IN_RUNNER)
/* An enum rerun_state of a cell v of change c. An experiment of another change on the same merge base decides it, too. */
#define RERUN_OF_CELL                                                                                                  \
	"CASE WHEN v.attribution IS NULL THEN 0 WHEN " OWN_RERUN(                                                      \
	    "0") " THEN 1"                                                                                             \
		 " WHEN (v.needs & 2) <> 0 AND c.state = 'open' AND " RERUN_OF_ANOTHER " THEN 1"                       \
		 " WHEN " OWN_RERUN("1") " THEN 2 ELSE 0 END"
_Static_assert(NEEDS_GOOD_MACHINE == 4, "OWN_RERUN has its number");
_Static_assert(RERUN_PENDING == 1 && RERUN_LATER == 2, "RERUN_OF_CELL has their numbers");

static void add_cells(struct change_view *v, struct rows *r)
{
	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_key(r));

		if (!a)
			continue;
		struct verdict_view *w = ARRAY_PUSH(v->verdicts, v->n_verdicts);
		w->accelerator = (size_t)(a - v->accelerators);
		record_read(r, &verdict_view_record, w);
	}
}

/* ---- a cell's place in the order: suite, test, dtype, accelerator ---- */

struct cell_key {
	const char *part[KEY_PARTS];
};

static int key_compare(const struct cell_key *a, const struct cell_key *b)
{
	int order = 0;

	for (int i = 0; i < KEY_PARTS && !order; i++)
		order = strcmp(a->part[i], b->part[i]);
	return order;
}

/* The place behind which the answer goes on. Its bytes came from outside: a missing part is empty. They end with a NUL. */
static struct cell_key key_after(const struct verdict_choice *choice)
{
	const char *at = choice->after, *end = at + choice->after_bytes;
	struct cell_key key;

	for (int i = 0; i < KEY_PARTS; i++) {
		key.part[i] = at < end ? at : "";
		if (at < end)
			at += strlen(at) + 1;
	}
	return key;
}

static bool is_chosen(const struct accelerator_view *a, enum test_status status, enum attribution attribution,
    const struct verdict_choice *choice)
{
	return a->level > LEVEL_1 && (!choice->statuses || choice->statuses >> status & 1) &&
	       (!choice->attributions || choice->attributions >> attribution & 1);
}

/* ---- reading all of them, or the worst ---- */

/* So that a view without all cells knows which accelerators passed. Returns how many cells the answer may list (choice NULL: any). */
static int64_t count_cells(struct change_view *v, const struct cell_sets *cells, const struct verdict_choice *choice)
{
	int64_t n_chosen = 0;

	for (const struct cell_set *s = cells->at; s < cells->at + cells->n; s++) {
		struct accelerator_view *a = change_view_accelerator(v, s->accelerator);
		int64_t n[N_TEST_STATUSES][N_ATTRIBUTIONS + 1] = {{0}};

		for (const struct cell *c = s->at; a && c < s->at + s->n; c++) {
			n[c->status][c->attribution]++;
			a->n_verdicts[c->status] += c->has_job;
		}
		for (int i = 0; a && i < N_TEST_STATUSES; i++)
			for (int k = 0; k <= N_ATTRIBUTIONS; k++)
				if (choice && is_chosen(a, (enum test_status)i, (enum attribution)k, choice))
					n_chosen += n[i][k];
	}
	return n_chosen;
}

#define CELLS_OF_CHANGE(cells)                                                                                         \
	RECORD_SELECT_BY("v.accelerator", VERDICT_VIEW_RECORD)                                                         \
	" FROM " cells " v CROSS JOIN test t ON t.id = v.test_id CROSS JOIN change c ON c.id = v.change_id"            \
	" WHERE v.change_id = ?1 AND v.attribution IS "

static void read_worst_cells(const struct view *d, struct change_view *v, size_t max, const struct cell_sets *cells)
{
	int64_t limit = max ? (int64_t)max : INT64_MAX;

	add_cells(v, db_rows(d, CELLS_OF_CHANGE("verdict") "NOT NULL ORDER BY v.accelerator, v.test_id LIMIT ?2",
			 V_INT(v->change_id), V_INT(limit)));
	/* any of them: count_cells() has the numbers of all */
	add_cells(v, db_rows(d, CELLS_OF_CHANGE("cell") "NULL LIMIT ?2", V_INT(v->change_id),
			 V_INT(limit - (int64_t)v->n_verdicts)));
	v->is_cut = (int64_t)v->n_verdicts < v->n_verdicts_total;
	if (!v->is_cut)
		return;
	count_cells(v, cells, NULL);
	v->n_tests_total = cell_sets_n_tests(cells);
}

/* ---- reading those that an answer lists ---- */

#define TEST_NAME_RECORD(F, S)                                                                                         \
	F(S, INT, id, NULL, "t.id", "")                                                                                \
	F(S, TEXT, suite, NULL, "t.suite", "")                                                                         \
	F(S, TEXT, name, NULL, "t.name", "")                                                                           \
	F(S, TEXT, dtype, NULL, "t.dtype", "")
RECORD_LOCAL(test_name, TEST_NAME_RECORD)

#define CELL_TEXT_RECORD(F, S)                                                                                         \
	F(S, TEXT, message, NULL, "message", "")                                                                       \
	F(S, TEXT, file, NULL, "file", "")                                                                             \
	F(S, ID, line, NULL, "line", "")
RECORD_DEFINE_PART(cell_text, verdict_view, CELL_TEXT_RECORD);

/* The result with the texts of a verdict of the view. */
struct text_place {
	size_t verdict;
	int64_t job_id, ordinal;
};

struct chosen_read {
	const struct view *d;
	struct change_view *v;
	const struct cell_sets *cells;
	const struct verdict_choice *choice;
	size_t n_added; /* that the answer lists */
	struct text_place *texts;
	size_t n_texts;
};

/* Adds the cell, unless it has an attribution, because those are read already. */
static void add_chosen(
    struct chosen_read *r, const struct cell_set *s, const struct cell *c, const struct test_name *test)
{
	struct accelerator_view *a = change_view_accelerator(r->v, s->accelerator);
	const struct cell_part *part = c->is_row ? NULL : &s->parts[c->part];

	if (c->attribution != N_ATTRIBUTIONS)
		return;
	if (!part) {
		add_cells(
		    r->v, db_rows(r->d, CELLS_OF_CHANGE("verdict") "NULL AND v.accelerator = ?2 AND v.test_id = ?3",
			      V_INT(r->v->change_id), V_TEXT(s->accelerator), V_INT(c->test_id)));
		return;
	}
	if (part->has_rows)
		*ARRAY_PUSH(r->texts, r->n_texts) =
		    (struct text_place){r->v->n_verdicts, part->job_id, part->first + c->i};
	*ARRAY_PUSH(r->v->verdicts, r->v->n_verdicts) =
	    (struct verdict_view){.accelerator = (size_t)(a - r->v->accelerators),
		.suite = xstrdup(test->suite),
		.test = xstrdup(test->name),
		.dtype = test->dtype && test->dtype[0] ? xstrdup(test->dtype) : NULL,
		.status = (enum test_status)c->status,
		.attribution = N_ATTRIBUTIONS,
		.job = part->job_id,
		.is_late = part->is_late};
}

static void read_cell_texts(struct chosen_read *r)
{
	DB_PIPELINE (r->d)
		for (const struct text_place *t = r->texts; t < r->texts + r->n_texts; t++) {
			record_release(&cell_text_record, &r->v->verdicts[t->verdict]);
			RECORD_READ_FIRST(r->d, cell_text, CELL_TEXT_RECORD, &r->v->verdicts[t->verdict],
			    "FROM result WHERE job_id = ?1 AND ordinal = ?2", V_INT(t->job_id), V_INT(t->ordinal));
		}
	free(r->texts);
}

/* Adds the cells of a test that the answer may list; after NULL: from the first accelerator on. */
static void add_chosen_of_test(struct chosen_read *r, const struct test_name *test, const struct cell_key *after)
{
	for (const struct cell_set *s = r->cells->at; s < r->cells->at + r->cells->n; s++) {
		const struct accelerator_view *a = change_view_accelerator(r->v, s->accelerator);
		const struct cell *c = a ? cell_set_find(s, test->id) : NULL;
		struct cell_key key = {{test->suite, test->name, test->dtype ? test->dtype : "", s->accelerator}};

		if (!c || !is_chosen(a, (enum test_status)c->status, (enum attribution)c->attribution, r->choice) ||
		    (after && key_compare(&key, after) <= 0))
			continue;
		add_chosen(r, s, c, test);
		r->n_added++;
	}
}

/* Walks over the names of tests from the cursor on. False: the change has so few of them that the walk was ended. It reads a few names
 * first and then ever more, because PostgreSQL sends all rows of a statement. */
static bool add_chosen_by_name(struct chosen_read *r, size_t n_wanted, int64_t n_names_max)
{
	struct cell_key after = key_after(r->choice);
	struct test_name test = {
	    .suite = xstrdup(after.part[0]), .name = xstrdup(after.part[1]), .dtype = xstrdup(after.part[2])};
	int64_t n_names = 0, n_read = NAMES_READ_FIRST;
	bool is_at_end = false;

	while (r->n_added < n_wanted && n_names < n_names_max && !is_at_end) {
		int64_t last_id = test.id, n_rows = 0;
		struct rows *rows = db_rows(r->d,
		    RECORD_QUERY(TEST_NAME_RECORD, "FROM test t WHERE (t.suite, t.name, t.dtype) >= (?1, ?2, ?3)"
						   " ORDER BY t.suite, t.name, t.dtype LIMIT ?4"),
		    V_TEXT(test.suite), V_TEXT(test.name), V_TEXT(test.dtype), V_INT(n_read));

		for (; r->n_added < n_wanted && rows_next(rows); n_rows++) {
			record_release(&test_name_record, &test);
			record_read(rows, &test_name_record, &test);
			if (test.id != last_id)
				add_chosen_of_test(r, &test, r->choice->after_bytes ? &after : NULL);
		}
		rows_end(rows);
		is_at_end = n_rows < n_read;
		n_names += n_rows;
		n_read *= 4;
	}
	record_release(&test_name_record, &test);
	return r->n_added >= n_wanted || n_names < n_names_max;
}

static void add_chosen_by_id(struct chosen_read *r, const struct cell_set *s, const struct cell *c)
{
	struct test_name test;

	if (!RECORD_READ_FIRST(
		r->d, test_name, TEST_NAME_RECORD, &test, "FROM test t WHERE t.id = ?1", V_INT(c->test_id)))
		return;
	add_chosen(r, s, c, &test);
	record_release(&test_name_record, &test);
}

static void add_all_chosen(struct chosen_read *r)
{
	for (const struct cell_set *s = r->cells->at; s < r->cells->at + r->cells->n; s++) {
		const struct accelerator_view *a = change_view_accelerator(r->v, s->accelerator);

		for (const struct cell *c = s->at; a && c < s->at + s->n; c++)
			if (is_chosen(a, (enum test_status)c->status, (enum attribution)c->attribution, r->choice))
				add_chosen_by_id(r, s, c);
	}
}

/* ---- the cells that decide whether an accelerator meets its requirements (text/table.c) ---- */

/* Adds a cell of the suite that a job reported, if there is one. */
static void add_cell_of_suite(struct chosen_read *r, const struct cell_set *s, const char *suite)
{
	struct rows *rows =
	    db_rows(r->d, RECORD_QUERY(TEST_NAME_RECORD, "FROM test t WHERE t.suite = ?1"), V_TEXT(suite));
	bool is_found = false;

	while (!is_found && rows_next(rows)) {
		struct test_name test;
		const struct cell *c;

		record_read(rows, &test_name_record, &test);
		c = cell_set_find(s, test.id);
		is_found = c && c->status != TEST_MISS;
		if (is_found)
			add_chosen(r, s, c, &test);
		record_release(&test_name_record, &test);
	}
	rows_end(rows);
}

/* Adds the cells of the test "SUITE/TEST" with each dtype. Either name may contain slashes. */
static void add_cells_named(struct chosen_read *r, const struct cell_set *s, const char *name)
{
	for (const char *slash = name; slash; slash = strchr(slash + 1, '/')) {
		char *suite = slash == name ? xstrdup("") : xstrndup(name, (size_t)(slash - name));
		struct rows *rows =
		    db_rows(r->d, RECORD_QUERY(TEST_NAME_RECORD, "FROM test t WHERE t.suite = ?1 AND t.name = ?2"),
			V_TEXT(suite), V_TEXT(slash == name ? name : slash + 1));

		while (rows_next(rows)) {
			struct test_name test;
			const struct cell *c;

			record_read(rows, &test_name_record, &test);
			c = cell_set_find(s, test.id);
			if (c)
				add_chosen(r, s, c, &test);
			record_release(&test_name_record, &test);
		}
		free(suite);
	}
}

static void add_required_cells(struct chosen_read *r)
{
	bool has_any = false; /* one cell at least, because a table without rows looks as if nothing was reported */

	for (size_t i = 0; i < r->v->n_accelerators; i++) {
		const struct accelerator_view *a = &r->v->accelerators[i];
		const struct cell_set *s = cell_sets_find(r->cells, a->name);

		if (!s || a->level <= LEVEL_1)
			continue;
		for (char **suite = a->required_suites; *suite; suite++)
			add_cell_of_suite(r, s, *suite);
		for (char **name = a->must_pass; *name; name++)
			add_cells_named(r, s, *name);
		for (size_t k = 0; !has_any && k < s->n; k++) {
			has_any = s->at[k].attribution == N_ATTRIBUTIONS;
			if (has_any)
				add_chosen_by_id(r, s, &s->at[k]);
		}
	}
}

/* ---- the whole ---- */

enum { CELLS_BY_ID_MAX = 300, NAMES_MIN = 1000 };

/* The red cells, and of the others only those that the answer lists or that decide a requirement. */
static void read_chosen_cells(
    const struct view *d, struct change_view *v, const struct verdict_choice *choice, const struct cell_sets *cells)
{
	struct chosen_read r = {.d = d, .v = v, .cells = cells, .choice = choice};
	int64_t n_names = v->n_verdicts_total / (int64_t)(cells->n + 1) * 2 + NAMES_MIN;

	v->has_only_chosen = true;
	v->n_chosen = count_cells(v, cells, choice);
	add_cells(v, db_rows(d, CELLS_OF_CHANGE("verdict") "NOT NULL", V_INT(v->change_id)));
	if (v->n_chosen <= CELLS_BY_ID_MAX || !add_chosen_by_name(&r, choice->limit + 1, n_names))
		add_all_chosen(&r);
	add_required_cells(&r);
	read_cell_texts(&r);
}

/* Deletes all but one of equal cells, which follow each other. */
static void drop_repeated(struct change_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_verdicts; i++) {
		if (n && verdict_view_compare(&v->verdicts[n - 1], &v->verdicts[i]) == 0)
			record_release(&verdict_view_record, &v->verdicts[i]);
		else
			v->verdicts[n++] = v->verdicts[i];
	}
	v->n_verdicts = n;
}

void change_cells_read(const struct view *d, struct change_view *v, const struct cell_sets *cells, size_t max,
    const struct verdict_choice *choice)
{
	v->n_verdicts_total = 0;
	for (size_t i = 0; i < cells->n; i++)
		v->n_verdicts_total += (int64_t)cells->at[i].n;
	if (choice && choice->limit)
		read_chosen_cells(d, v, choice, cells);
	else
		read_worst_cells(d, v, max, cells);
	if (v->n_verdicts)
		qsort(v->verdicts, v->n_verdicts, sizeof(*v->verdicts), verdict_view_compare);
	if (v->has_only_chosen)
		drop_repeated(v);
	change_reruns_read(d, v);
}

/* ---- the JSON ---- */

static void cell_out(struct buf *out, const struct change_view *v, const struct verdict_view *w, const char *public_url)
{
	const struct accelerator_view *a = &v->accelerators[w->accelerator];
	struct verdict_evidence e = verdict_evidence_of(w);

	json_out_open(out, NULL, '{');
	record_out(out, &verdict_view_record, w);
	json_out_text(out, "accelerator", a->name);
	json_out_text(
	    out, "group", test_status_is_red(w->status) ? failure_group_name(table_failure_group(a, w)) : NULL);
	json_out_id(out, "evidence_job", e.job);
	if (e.issue_url)
		json_out_text(out, "evidence_url", e.issue_url);
	else
		job_url_out(out, "evidence_url", public_url, e.job);
	json_out_close(out, '}');
}

void change_cells_out(
    struct buf *out, const struct change_view *v, const struct verdict_choice *choice, const char *public_url)
{
	struct cell_key after = key_after(choice), last = after;
	struct buf bytes = BUF_INIT(KEY_MAX_BYTES);
	json_t *next = json_null();
	size_t n_listed = 0;
	bool is_more = false;
	int64_t n_total = 0;

	json_out_open(out, "verdicts", '[');
	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		const struct accelerator_view *a = &v->accelerators[w->accelerator];
		struct cell_key k = {
		    {w->suite ? w->suite : "", w->test ? w->test : "", w->dtype ? w->dtype : "", a->name}};

		if (!is_chosen(a, w->status, w->attribution, choice))
			continue;
		n_total++;
		if (is_more || (choice->after_bytes && key_compare(&k, &after) <= 0))
			continue;
		is_more = choice->limit && n_listed == choice->limit;
		if (is_more)
			continue;
		cell_out(out, v, w, public_url);
		n_listed++;
		last = k;
	}
	json_out_close(out, ']');
	if (is_more) {
		for (int i = 0; i < KEY_PARTS; i++)
			buf_append(&bytes, last.part[i], strlen(last.part[i]) + (i < KEY_PARTS - 1));
		next = cursor_json(buf_str(&bytes), bytes.len);
	}
	buf_release(&bytes);
	json_out_members(out, json_pack("{s:I, s:o}", "verdicts_total",
				  (json_int_t)(v->has_only_chosen ? v->n_chosen : n_total), "next", next));
}
