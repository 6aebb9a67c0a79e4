/* Cells and their evidence, through the operations that create both: pushes, pull requests, reports, and data from
 * GitHub. Commits of main are 'A', 'B', … in their order; heads are small letters. */
#include "db/db.h"
#include "model/experiment.h"
#include "store_rig.h"
#include "verdict/attribution.h"
#include "verdict/known_issues.h"
#include "views/change.h"

static const char SPECIFIC[] = "HCCL timeout on device 3", OTHER[] = "aten::foo is missing",
		  GENERAL[] = "AssertionError";

static const char *sha(char letter)
{
	static char text[8][41];
	static int next;
	char *s = text[next++ % 8];

	/* hexadecimal, and another for each letter */
	snprintf(s, 41, "%040x", (unsigned)letter * 0x10101);
	return s;
}

static char *no_names[] = {NULL};
static int n_guids;

static void apply(struct plan *p, int64_t now_ms)
{
	char guid[64];
	struct apply_plan op = {.guid = guid, .body = "{}", .body_bytes = 2, .plan = p, .now_ms = now_ms};

	snprintf(guid, sizeof(guid), "guid-%d", ++n_guids);
	DO_OK(store_apply_plan, &op);
}

static char *pushed_files[2]; /* the files of the next pushes; NULL: none */

static void push_titled(char commit, const char *author, const char *title, int64_t now_ms)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	const char *head = sha(commit);
	struct push_commit c = {.sha = (char *)head, .author = (char *)author, .title = (char *)title, .at_ms = now_ms};

	if (pushed_files[0])
		c.files = pushed_files;
	apply(&(struct plan){.kind = PLAN_START,
		  .change_kind = CHANGE_PUSH,
		  .repository = (char *)UPSTREAM,
		  .head_sha = (char *)head,
		  .before = (char *)sha((char)(commit - 1)),
		  .ref = (char *)"refs/heads/main",
		  .commits = &c,
		  .n_commits = 1,
		  .author = (char *)author,
		  .event_type = (char *)"push",
		  .wants = wants,
		  .n_wants = 1},
	    now_ms);
}

static void push_by(char commit, const char *author, int64_t now_ms)
{
	push_titled(commit, author, "A commit", now_ms);
}

static void push(char commit) { push_by(commit, "merger", T0); }

struct pr {
	int64_t number;
	char head;
	const char *author, *base_ref; /* NULL: main */
	char base;                     /* its merge base on main; 0: not known */
	const char *file;              /* NULL: not known */
	bool is_closed;
	bool has_two_runners; /* ci and lab */
	int64_t at_ms;        /* 0: T0 */
};

static int64_t id_of(char head)
{
	struct get_change g = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .head_sha = sha(head)};
	int64_t id;

	ASK_OK(store_get_change, &g);
	id = g.view->change_id;
	change_view_free(g.view);
	return id;
}

static void pull(const struct pr *x)
{
	static int64_t at;
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("npu")};
	const char *head = sha(x->head), *files[] = {x->file, NULL};

	apply(&(struct plan){.kind = x->is_closed ? PLAN_CLOSE : PLAN_START,
		  .change_kind = CHANGE_PULL_REQUEST,
		  .repository = (char *)UPSTREAM,
		  .pull = {.number = x->number,
		      .head_sha = (char *)head,
		      .base_sha = (char *)HEAD_C,
		      .base_ref = (char *)(x->base_ref ? x->base_ref : "main"),
		      .author = (char *)x->author,
		      .labels = no_names,
		      .is_open = !x->is_closed,
		      .updated_ms = (x->at_ms ? x->at_ms : T0) + 1000 * ++at},
		  .head_sha = (char *)head,
		  .event_type = (char *)"pull_request",
		  .original_action = (char *)(x->is_closed ? "closed" : "opened"),
		  .sent_action = (char *)"opened",
		  .wants = wants,
		  .n_wants = x->is_closed ? 0 : 1 + (size_t)x->has_two_runners},
	    x->at_ms ? x->at_ms : T0);
	if (x->base) {
		struct put_merge_base m = {.change_id = id_of(x->head), .sha = sha(x->base), .now_ms = T0};

		DO_OK(store_put_merge_base, &m);
	}
	if (x->file) {
		struct put_files f = {.repository = UPSTREAM, .head_sha = head, .files = files, .now_ms = T0};

		DO_OK(store_put_files, &f);
	}
}

static struct test_result result(enum test_status status, const char *message)
{
	return (struct test_result){.suite = (char *)"model",
	    .name = (char *)"llama3",
	    .status = status,
	    .duration_ms = -1,
	    .message = (char *)(test_status_is_red(status) ? message : NULL)};
}

static int64_t report_tests(char head, int attempt, struct test_result *tests, size_t n, int64_t now_ms)
{
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = attempt,
	    .tests = tests,
	    .n_tests = n};
	char *id = rig_dispatch_id(sha(head), "npu");
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = now_ms};

	j.digest[0] = (uint8_t)(1 + attempt);
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
	return op.job_id;
}

static int64_t report_at(char head, int attempt, enum test_status status, const char *message, int64_t now_ms)
{
	struct test_result t = result(status, message);

	return report_tests(head, attempt, &t, 1, now_ms);
}

static int64_t report(char head, enum test_status status, const char *message)
{
	return report_at(head, 1, status, message, T0 + HOUR);
}

/* The dispatch of one of its runners. free(). */
static char *dispatch_to(char head, const char *runner)
{
	struct change_view *v = rig_view_of(0, sha(head));
	char *id = NULL;

	for (size_t i = 0; i < v->accelerators[0].n_dispatches; i++)
		if (strcmp(v->accelerators[0].dispatches[i].runner, runner) == 0)
			id = xstrdup(v->accelerators[0].dispatches[i].id);
	change_view_free(v);
	assert_non_null(id);
	return id;
}

/* One attempt of a job, by name, on a runner. message NULL: it passed. */
static int64_t report_job_test(
    char head, const char *runner, const char *name, int attempt, const char *test, const char *message)
{
	struct test_result t = result(message ? TEST_FAIL : TEST_PASS, message);
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)(message ? "failure" : "success"),
	    .workflow = (char *)"CI",
	    .name = (char *)name,
	    .run_id = (char *)"1",
	    .run_attempt = attempt,
	    .tests = &t,
	    .n_tests = 1};
	char *id = dispatch_to(head, runner);
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = T0 + HOUR + attempt};

	t.name = (char *)test;
	j.digest[0] = (uint8_t)(1 + attempt);
	DO_OK(store_report_job, &op);
	free(id);
	return op.job_id;
}

static int64_t report_job(char head, const char *runner, const char *name, int attempt, const char *message)
{
	return report_job_test(head, runner, name, attempt, "llama3", message);
}

/* Adds red runs of the branch, so that those around a merge base are unlikely to be chance. */
static void two_more_are_red(char first)
{
	for (int i = 0; i < 2; i++) {
		push((char)(first + i));
		report((char)(first + i), TEST_FAIL, SPECIFIC);
	}
}

static struct verdict_view *find_cell_of(struct change_view *v, const char *test)
{
	for (size_t i = 0; i < v->n_verdicts; i++)
		if (strcmp(v->verdicts[i].test, test) == 0)
			return &v->verdicts[i];
	fail_msg("no cell");
	return NULL;
}

static struct verdict_view *find_cell(struct change_view *v) { return find_cell_of(v, "llama3"); }

static void assert_cell(char head, const char *expected, int64_t evidence_job, int line)
{
	struct change_view *v = rig_view_of(0, sha(head));
	struct verdict_view *w = find_cell(v);
	const char *is = attribution_name(w->attribution);

	if (!is || strcmp(is, expected) != 0 || !w->reason || !w->reason[0])
		fail_msg("line %d: %s (%s), not %s", line, is ? is : "green", w->reason, expected);
	if (evidence_job >= 0)
		assert_int_equal(w->evidence_job, evidence_job);
	change_view_free(v);
}
#define ASSERT_CELL(head, expected)       assert_cell(head, expected, -1, __LINE__)
#define ASSERT_SHOWN(head, expected, job) assert_cell(head, expected, job, __LINE__)

/* A number that a query finds in the committed database. */
static bool has_reason(char head, const char *part)
{
	struct change_view *v = rig_view_of(0, sha(head));
	const char *reason = find_cell(v)->reason;
	bool has = reason && strstr(reason, part);

	change_view_free(v);
	return has;
}
#define ASSERT_REASON(head, part) assert_true(has_reason(head, part))

static int64_t stored_number(const char *sql)
{
	char *path = rig_path();
	struct db *d;
	int64_t n;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	free(path);
	n = db_int_values(db_view(d), -1, sql, VALUES());
	assert_int_equal(db_status(d), 0);
	db_close(d);
	return n;
}

/* Attributes the due changes until none is left. Returns their number, and whether a cell moved. */
static int settle(bool *ret_has_moved)
{
	int n = 0;

	*ret_has_moved = false;
	for (;;) {
		struct claim_due_changes c = {.now_ms = T0 + DAY, .limit = 10};
		size_t n_due;

		ASK_OK(store_claim_due_changes, &c);
		n_due = c.n;
		for (size_t i = 0; i < c.n; i++) {
			struct attribute_change a = {
			    .change_id = c.list[i].change_id, .generation = c.list[i].generation, .now_ms = T0 + HOUR};

			DO_OK(store_attribute_change, &a);
			*ret_has_moved |= a.has_moved;
		}
		claim_due_changes_release(&c);
		if (!n_due)
			return n;
		n += (int)n_due;
		assert_true(n < 100);
	}
}

/* ---- stories ---- */

static void red_on_the_merge_base(void **state)
{
	int64_t base;
	bool has_moved;

	(void)state;
	push('B');
	base = report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report('a', TEST_FAIL, "HCCL timeout on device 7");
	ASSERT_SHOWN('a', "BASE", base);
	report_at('B', 2, TEST_PASS, NULL, T0 + 2 * HOUR); /* it was flaky there, which is no evidence here */
	settle(&has_moved);
	assert_true(has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

static void another_message_on_the_base_is_not_base(void **state)
{
	(void)state;
	push('B');
	report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report('a', TEST_FAIL, OTHER);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

/* Finding 23 */
static void numbers_distinguish_breakages(void **state)
{
	(void)state;
	push('B');
	report('B', TEST_FAIL, "graph of llama: expected 4, got 6");
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report('a', TEST_FAIL, "graph of llama: expected 4, got 7");
	ASSERT_CELL('a', "UNCLASSIFIED");
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B'});
	report('b', TEST_FAIL, "graph of llama: expected 4, got 6");
	ASSERT_CELL('b', "BASE");
	/* unless they differ on one commit */
	report_at('B', 2, TEST_FAIL, "graph of llama: expected 4, got 9", T0 + 2 * HOUR);
	pull(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'B'});
	report('c', TEST_FAIL, "graph of llama: expected 4, got 7");
	ASSERT_CELL('c', "BASE");
}

/* Finding 4 */
static void the_first_landing_of_the_same_change_excuses_nothing(void **state)
{
	static const struct {
		const char *author, *title, *expected;
	} CASES[] = {{"bot", "Move states (#1)", "UNCLASSIFIED"},
	    {"alice", "Something else", "BASE"}, /* it is red without this change */
	    {"bot", "Move states (#11)", "BASE"}};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		push('B');
		report('B', TEST_PASS, NULL);
		push_titled('C', CASES[i].author, CASES[i].title, T0);
		push('D');
		report('D', TEST_FAIL, SPECIFIC);
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'D'});
		report('a', TEST_FAIL, SPECIFIC);
		ASSERT_CELL('a', CASES[i].expected);
	}
}

/* Finding 3. The files come from the pull request, or from the push that contained it. */
static void a_commit_between_that_touches_the_same_file(void **state)
{
	for (int i = 0; i < 4; i++) {
		const char *files[] = {"a.c", NULL};
		struct put_files f = {.repository = UPSTREAM, .files = files, .now_ms = T0};
		bool is_pushed = i & 1, is_other = i & 2;

		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		push('B');
		report('B', TEST_FAIL, SPECIFIC);
		pushed_files[0] = is_pushed ? (char *)"a.c" : NULL;
		push('C');
		pushed_files[0] = NULL;
		push('D');
		push('E');
		report('E', TEST_FAIL, SPECIFIC);
		two_more_are_red('F');
		f.head_sha = sha('C');
		if (!is_pushed)
			DO_OK(store_put_files, &f);
		pull(&(struct pr){
		    .number = 1, .head = 'a', .author = "alice", .base = 'D', .file = is_other ? "c.c" : "a.c"});
		report('a', TEST_FAIL, SPECIFIC);
		ASSERT_CELL('a', is_other ? "BASE" : "UNCLASSIFIED");
	}
}

/* Finding 21 */
static void a_late_retry_may_have_tested_the_next_head(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + HOUR);
	pull(&(struct pr){.number = 1, .head = 'b', .author = "alice", .base = 'B', .at_ms = T0 + HOUR + HOUR / 2});
	report_at('a', 2, TEST_PASS, NULL, T0 + 2 * HOUR);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .at_ms = T0 + 2 * HOUR + HOUR / 2});
	report_at('a', 3, TEST_FAIL, SPECIFIC, T0 + 3 * HOUR);
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

/* They are attributed a second later, because GitHub's answer about this change may explain them. */
static void others_wait_for_the_facts_of_a_failure(void **state)
{
	struct get_totals t = {.now_ms = T0 + HOUR, .has_experiments = true};

	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B'});
	report('a', TEST_FAIL, SPECIFIC);
	settle(&(bool){false});
	report('b', TEST_FAIL, SPECIFIC);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.next_attribution_ms, T0 + HOUR + 1000);
	get_totals_release(&t);
	t.now_ms += 1000;
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.next_attribution_ms, 0);
	assert_true(t.n_attribution_due > 0);
	get_totals_release(&t);
}

static void the_merge_base_arrives_later(void **state)
{
	struct claim_due_changes c = {.now_ms = T0 + DAY, .limit = 10};
	struct put_merge_base m = {.sha = sha('B'), .now_ms = T0};
	struct change_view *v;
	struct claim_outbox comments;
	int64_t base;
	bool has_moved;

	(void)state;
	push('B');
	base = report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice"});
	rig_topics = 0;
	report('a', TEST_FAIL, SPECIFIC);
	assert_true(rig_topics & STORE_ATTRIBUTION);
	v = rig_view_of(1, NULL);
	assert_string_equal(find_cell(v)->reason, "the merge base is not known");
	change_view_free(v);
	comments = rig_claim(1u << OUTBOX_COMMENT, T0 + 2 * HOUR);
	rig_done(&comments.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&comments);
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 1);
	assert_true(c.list[0].needs_merge_base);
	assert_true(c.list[0].needs_files);
	assert_int_equal(c.list[0].number, 1);
	assert_string_equal(c.list[0].base_ref, "main");
	m.change_id = c.list[0].change_id;
	claim_due_changes_release(&c);
	DO_OK(store_put_merge_base, &m);
	assert_int_equal(settle(&has_moved), 1);
	assert_true(has_moved);
	ASSERT_SHOWN('a', "BASE", base);
	comments = rig_claim(1u << OUTBOX_COMMENT, T0 + 2 * HOUR);
	assert_int_equal(comments.n, 1);
	claim_outbox_release(&comments);
}

/* A decided cell, a green one and one without a result need no experiment. */
static void the_cell_says_which_experiments_it_needs(void **state)
{
	static const char NEEDS[] = "SELECT needs FROM change c CROSS JOIN cell v ON v.change_id = c.id"
				    " WHERE c.kind = 'pull_request'";

	(void)state;
	push('B');
	push('C');
	report('C', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + HOUR);
	assert_int_equal(stored_number(NEEDS), NEEDS_HEAD | NEEDS_BASE);
	report_at('a', 2, TEST_MISS, NULL, T0 + 2 * HOUR);
	assert_int_equal(stored_number(NEEDS), 0);
	report_at('a', 3, TEST_FAIL, SPECIFIC, T0 + 3 * HOUR); /* the second failure on this commit */
	assert_int_equal(stored_number(NEEDS), NEEDS_BASE);
	report_at('a', 5, TEST_PASS, NULL, T0 + 5 * HOUR);
	assert_int_equal(stored_number(NEEDS), 0);
}

/* As /api/v1/status shows it. */
static int64_t n_attribution_due(int64_t now_ms)
{
	struct get_totals t = {.now_ms = now_ms, .has_experiments = true};

	ASK_OK(store_get_totals, &t);
	get_totals_release(&t);
	return t.n_attribution_due;
}

static void a_postponed_change_stays_due(void **state)
{
	struct claim_due_changes c = {.now_ms = T0 + DAY, .limit = 10};
	struct attribute_change a = {.now_ms = T0 + HOUR, .again_ms = T0 + 2 * DAY};

	(void)state;
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice"});
	report('a', TEST_FAIL, SPECIFIC);
	assert_int_equal(n_attribution_due(T0 + DAY), 1);
	ASK_OK(store_claim_due_changes, &c);
	a.change_id = c.list[0].change_id;
	a.generation = c.list[0].generation;
	claim_due_changes_release(&c);
	DO_OK(store_attribute_change, &a);
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.next_ms, T0 + 2 * DAY);
	claim_due_changes_release(&c);
	assert_int_equal(n_attribution_due(T0 + DAY), 0);
	assert_int_equal(n_attribution_due(T0 + 3 * DAY), 1);
	c.now_ms = T0 + 3 * DAY;
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.list[0].n_tries, 1);
	claim_due_changes_release(&c);
	a.generation--; /* more evidence arrived meanwhile: it stays */
	a.again_ms = 0;
	DO_OK(store_attribute_change, &a);
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 1);
	claim_due_changes_release(&c);
}

static void the_nearest_tested_commits_on_both_sides(void **state)
{
	struct mirror_registry m = {.now_ms = T0, .attribution_window_ms = DAY, .attribution_distance = 2};
	int64_t base;
	bool has_moved;

	(void)state;
	for (char c = 'B'; c <= 'G'; c++)
		push(c);
	base = report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'E'});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "UNCLASSIFIED"); /* it may have been fixed before E */
	report('F', TEST_FAIL, SPECIFIC);
	two_more_are_red('H');
	settle(&has_moved);
	ASSERT_SHOWN('a', "BASE", base);
	report_at('D', 1, TEST_SKIP, NULL, T0 + HOUR); /* it may have been fixed while it was skipped */
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
	report_at('D', 2, TEST_FAIL, SPECIFIC, T0 + 2 * HOUR);
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
	report_at('D', 3, TEST_PASS, NULL, T0 + 3 * HOUR); /* green between */
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
	report('E', TEST_PASS, NULL);
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'G'});
	DO_OK(store_mirror_registry, &m);
	report_at('F', 2, TEST_DONE, NULL, T0 + 2 * HOUR); /* no evidence */
	report_at('E', 2, TEST_MISS, NULL, T0 + 2 * HOUR);
	report('b', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('b', "UNCLASSIFIED"); /* D is three commits away */
}

/* Pull requests on the commits between two red runs show whether the branch is broken there. */
static void changes_on_the_commits_between(void **state)
{
	(void)state;
	for (char c = 'B'; c <= 'D'; c++)
		push(c);
	report('B', TEST_FAIL, SPECIFIC);
	report('D', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'C'});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "UNCLASSIFIED"); /* two flakes, perhaps */
	pull(&(struct pr){.number = 2, .head = 'b', .author = "alice", .base = 'C'});
	report('b', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 3, .head = 'c', .author = "bob", .base = 'C'});
	report('c', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('c', "UNCLASSIFIED"); /* one author is one witness */
	pull(&(struct pr){.number = 4, .head = 'd', .author = "carol", .base = 'C'});
	report('d', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('d', "BASE");
	pull(&(struct pr){.number = 5, .head = 'e', .author = "dan", .base = 'C'});
	report('e', TEST_PASS, NULL);
	pull(&(struct pr){.number = 6, .head = 'f', .author = "eve", .base = 'C'});
	report('f', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('f', "UNCLASSIFIED");
}

/* Main was fixed after B and broken again before F: by a revert of the fix, or by a second landing. */
static void a_breakage_that_was_fixed_and_came_back_in_between(void **state)
{
	static const struct {
		const char *first, *second, *expected;
	} CASES[] = {
	    {"Fix the layout table", "Revert \"Fix the layout table\"", "UNCLASSIFIED"},
	    {"Revert \"Pack layouts\"", "[reland] Pack layouts", "UNCLASSIFIED"},
	    {"Pack layouts", "Speed up the build", "BASE"},
	    {"Revert \"Another one\"", "Speed up the build", "BASE"},
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		push('B');
		push_titled('C', "carol", CASES[i].first, T0);
		push('D');
		push_titled('E', "dave", CASES[i].second, T0);
		push('F');
		report('B', TEST_FAIL, SPECIFIC);
		report('F', TEST_FAIL, SPECIFIC);
		two_more_are_red('G');
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'D'});
		report('a', TEST_FAIL, SPECIFIC);
		ASSERT_CELL('a', CASES[i].expected);
	}
}

static void a_general_message_needs_more_of_the_branch(void **state)
{
	bool has_moved;

	(void)state;
	for (char c = 'B'; c <= 'D'; c++)
		push(c);
	report('D', TEST_FAIL, GENERAL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'D'});
	report('a', TEST_FAIL, GENERAL);
	ASSERT_CELL('a', "UNCLASSIFIED");
	report('B', TEST_PASS, NULL);
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
	report('C', TEST_FAIL, GENERAL);
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
}

static void passed_in_another_attempt(void **state)
{
	int64_t passed;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	passed = report_at('a', 1, TEST_PASS, NULL, T0 + HOUR);
	report_at('a', 2, TEST_FAIL, GENERAL, T0 + 2 * HOUR);
	ASSERT_SHOWN('a', "FLAKY", passed);
	report_at('a', 3, TEST_FAIL, GENERAL, T0 + 9 * DAY); /* that pass is too long ago */
	ASSERT_CELL('a', "NEW");
}

/* Finding 8: a crash of the process makes one test or another fail with it. */
static void a_crash_that_moves_to_another_test_is_not_fixed(void **state)
{
	struct test_result first[] = {result(TEST_PASS, NULL), result(TEST_FAIL, GENERAL)},
			   second[] = {result(TEST_FAIL, GENERAL), result(TEST_PASS, NULL)};

	(void)state;
	first[1].name = second[1].name = (char *)"bert";
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, first, 2, T0 + HOUR);
	report_tests('a', 2, second, 2, T0 + 2 * HOUR);
	ASSERT_CELL('a', "NEW");
	second[1] = first[1]; /* one passed while the other failed, each in its turn */
	report_tests('a', 3, second, 2, T0 + 3 * HOUR);
	ASSERT_CELL('a', "NEW");
}

/* The same between the jobs of a matrix. */
static void a_crash_that_moves_to_another_job_is_not_fixed(void **state)
{
	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_job('a', "ci", "part 1", 1, NULL);
	report_job('a', "ci", "part 1", 2, SPECIFIC);
	ASSERT_CELL('a', "FLAKY");
	report_job_test('a', "ci", "part 2", 1, "bert", SPECIFIC);
	report_job('a', "ci", "part 1", 3, SPECIFIC);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

/* message NULL: it passed. */
static void report_version(char head, int attempt, const char *message, const char *environment)
{
	struct test_result t = result(message ? TEST_FAIL : TEST_PASS, message);
	struct put_report op = {.job_id = report_tests(head, attempt, NULL, 0, T0 + HOUR),
	    .digest = {(uint8_t)(9 + attempt)},
	    .tests = &t,
	    .n_tests = 1,
	    .environment = environment,
	    .now_ms = T0 + HOUR};

	DO_OK(store_put_report, &op);
}

/* A larger card may have passed it. */
static void a_retry_on_another_device_is_not_evidence(void **state)
{
	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_version('a', 1, NULL, "{\"device\":\"64 GiB\"}");
	report_version('a', 2, SPECIFIC, "{\"device\":\"32 GiB\"}");
	ASSERT_CELL('a', "UNCLASSIFIED");
	assert_true(has_reason('a', "passed here on another device or version of the extension"));
	report_version('a', 3, NULL, "{\"device\":\"32 GiB\"}");
	report_version('a', 4, SPECIFIC, "{\"device\":\"32 GiB\"}");
	ASSERT_CELL('a', "FLAKY");
}

/* The newest attempt reported first. */
static void a_late_attempt_is_evidence(void **state)
{
	int64_t passed;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_at('a', 3, TEST_FAIL, SPECIFIC, T0 + HOUR);
	ASSERT_CELL('a', "NEW");
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + 2 * HOUR);
	assert_true(has_reason('a', "and red twice here"));
	passed = report_at('a', 2, TEST_PASS, NULL, T0 + 3 * HOUR);
	ASSERT_SHOWN('a', "FLAKY", passed);
}

/* A test that crashes the process makes others fail with it, and these pass without it. */
static void tests_that_failed_together_pass_together(void **state)
{
	struct test_result red[] = {result(TEST_FAIL, GENERAL), result(TEST_FAIL, GENERAL)},
			   again[] = {result(TEST_PASS, NULL), result(TEST_FAIL, GENERAL)},
			   green[] = {result(TEST_PASS, NULL), result(TEST_PASS, NULL)};
	struct change_view *v;

	(void)state;
	red[1].name = again[1].name = green[1].name = (char *)"bert";
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, again, 2, T0 + HOUR);
	report_tests('a', 2, red, 2, T0 + 2 * HOUR);
	ASSERT_CELL('a', "NEW");
	report_tests('a', 3, green, 2, T0 + 3 * HOUR);
	report_tests('a', 4, red, 2, T0 + 4 * HOUR);
	ASSERT_CELL('a', "FLAKY");
	v = rig_view_of(0, sha('a'));
	for (size_t i = 0; i < v->n_verdicts; i++)
		assert_int_equal(v->verdicts[i].attribution, ATTRIBUTION_FLAKY);
	change_view_free(v);
}

/* Finding 18 */
static void a_base_run_with_another_extension_is_not_evidence(void **state)
{
	(void)state;
	push('B');
	report_version('B', 1, SPECIFIC, "{\"extension\":{\"version\":\"v60\"},\"device\":\"910b\"}");
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_version('a', 1, SPECIFIC, "{\"extension\":{\"version\":\"v61\"}}");
	ASSERT_CELL('a', "UNCLASSIFIED");
	assert_true(has_reason('a', "but on another device or version of the extension"));
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B'});
	report_version('b', 1, SPECIFIC, "{\"extension\":{\"version\":\"v60\"}}");
	ASSERT_CELL('b', "BASE");
	pull(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'B'});
	report_version('c', 1, SPECIFIC, "{\"device\":\"910c\"}");
	ASSERT_CELL('c', "UNCLASSIFIED");
}

static void only_a_retry_of_the_same_job_counts(void **state)
{
	struct test_result red = result(TEST_FAIL, SPECIFIC), green = result(TEST_PASS, NULL);
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"CI",
	    .name = (char *)"on another machine",
	    .run_id = (char *)"2",
	    .run_attempt = 1,
	    .tests = &green,
	    .n_tests = 1};
	struct report_job op = {.report = &j, .now_ms = T0 + HOUR};
	char *id;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	id = rig_dispatch_id(sha('a'), "npu");
	op.dispatch_id = id;
	DO_OK(store_report_job, &op);
	j.run_attempt = 2;
	j.digest[0] = 2;
	DO_OK(store_report_job, &op);
	report_tests('a', 1, &red, 1, T0 + HOUR);
	ASSERT_CELL('a', "NEW");
	free(id);
}

static void a_pass_on_another_runner_does_not_count_as_a_retry(void **state)
{
	(void)state;
	push('B');
	report_job('B', "ci", "test", 1, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .has_two_runners = true});
	report_job('a', "lab", "test", 1, NULL);
	report_job('a', "lab", "test", 2, NULL); /* the first of them no longer counts */
	report_job('a', "ci", "test", 1, SPECIFIC);
	ASSERT_CELL('a', "NEW");
	report_job('a', "lab", "test", 3, SPECIFIC); /* flaky there, and red here all the same */
	ASSERT_CELL('a', "NEW");
	report_job('a', "ci", "test", 2, NULL);
	report_job('a', "ci", "test", 3, SPECIFIC);
	ASSERT_CELL('a', "FLAKY");
}

static void a_failure_in_two_jobs_needs_an_excuse_for_each(void **state)
{
	int64_t base, fresh;

	(void)state;
	push('B');
	base = report_job('B', "ci", "py310", 1, SPECIFIC);
	fresh = report_job('B', "ci", "py312", 1, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_job('a', "ci", "py310", 1, SPECIFIC);
	ASSERT_SHOWN('a', "BASE", base);
	report_job('a', "ci", "py312", 1, SPECIFIC); /* the same words as on the base, in another job */
	ASSERT_SHOWN('a', "NEW", fresh);
	report_job('a', "ci", "py312", 2, NULL);
	ASSERT_CELL('a', "BASE");
	report_job('a', "ci", "py310", 2, NULL);
	report_job('a', "ci", "py312", 3, OTHER); /* flaky there */
	ASSERT_CELL('a', "FLAKY");
}

/* A job without tests, of both runners under one name. */
static void report_job_itself(char head, const char *runner, const char *message)
{
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"failure",
	    .workflow = (char *)"CI",
	    .name = (char *)"build",
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .message = (char *)message};
	char *id = dispatch_to(head, runner);
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = T0 + HOUR};

	DO_OK(store_report_job, &op);
	free(id);
}

static void two_jobs_of_one_name_need_an_excuse_for_each(void **state)
{
	struct change_view *v;

	(void)state;
	push('B');
	report_job_itself('B', "ci", SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .has_two_runners = true});
	report_job_itself('a', "ci", SPECIFIC);
	v = rig_view_of(0, sha('a'));
	assert_int_equal(v->verdicts[0].attribution, ATTRIBUTION_BASE);
	change_view_free(v);
	report_job_itself('a', "lab", OTHER);
	v = rig_view_of(0, sha('a'));
	assert_int_equal(v->n_verdicts, 1);
	assert_int_equal(v->verdicts[0].attribution, ATTRIBUTION_UNCLASSIFIED);
	change_view_free(v);
}

static void many_jobs_with_one_message_are_one_failure(void **state)
{
	char name[16];

	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%d", i);
		report_job('B', "ci", name, 1, SPECIFIC);
		report_job('a', "ci", name, 1, SPECIFIC);
	}
	ASSERT_CELL('a', "BASE");
	report_job('a', "ci", "20", 1, SPECIFIC); /* which the base has not run */
	ASSERT_CELL('a', "UNCLASSIFIED");
}

static void too_many_red_jobs_are_not_compared(void **state)
{
	char name[16];

	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "%d", i);
		report_job('B', "ci", name, 1, SPECIFIC);
		report_job('a', "ci", name, 1, SPECIFIC);
	}
	ASSERT_CELL('a', "UNCLASSIFIED");
}

/* Equal messages are no evidence if the message would fit any failure. */
static void a_general_message_is_compared_job_by_job(void **state)
{
	bool has_moved;

	(void)state;
	for (char c = 'B'; c <= 'D'; c++) {
		push(c);
		report_job(c, "ci", "py312", 1, c == 'C' ? GENERAL : NULL);
		report_job(c, "ci", "py310", 1, c > 'B' ? GENERAL : NULL);
	}
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'D'});
	report_job('a', "ci", "py310", 1, GENERAL);
	ASSERT_CELL('a', "BASE");
	report_job('a', "ci", "py312", 1, GENERAL);
	ASSERT_CELL('a', "NEW");
	push('E');
	report_job('E', "ci", "py312", 1, GENERAL); /* around D, in each job */
	report_job('E', "ci", "py310", 1, GENERAL);
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
}

static void a_test_that_a_job_has_twice_needs_an_excuse_for_each(void **state)
{
	struct test_result tests[] = {result(TEST_FAIL, SPECIFIC), result(TEST_FAIL, OTHER)};

	(void)state;
	push('B');
	report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, tests, 2, T0 + HOUR);
	ASSERT_CELL('a', "UNCLASSIFIED");
	tests[1] = tests[0];
	report_tests('a', 2, tests, 2, T0 + HOUR);
	ASSERT_CELL('a', "BASE");
}

static void a_retry_that_omits_another_test_shows_its_own_duplicates(void **state)
{
	struct test_result first[] = {result(TEST_FAIL, OTHER), result(TEST_FAIL, SPECIFIC)};
	struct test_result again[] = {result(TEST_FAIL, SPECIFIC), result(TEST_FAIL, OTHER)};

	(void)state;
	first[0].name = (char *)"another";
	push('B');
	report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, first, 2, T0 + HOUR);
	ASSERT_CELL('a', "BASE");
	report_tests('a', 2, again, 2, T0 + HOUR);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

static void begin_two_pulls(const struct pr *second)
{
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	pull(second);
	report('b', TEST_FAIL, SPECIFIC);
}

/* A pull request on which it failed, and passed when its vendor tried again. Returns the failed job. */
static int64_t flake(const struct pr *x)
{
	int64_t failed;

	pull(x);
	failed = report_at(x->head, 1, TEST_FAIL, SPECIFIC, T0 + HOUR);
	report_at(x->head, 2, TEST_PASS, NULL, T0 + HOUR + MINUTE);
	return failed;
}

static void the_same_message_of_two_authors_stays_new(void **state)
{
	bool has_moved;

	(void)state;
	begin_two_pulls(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	report('a', TEST_FAIL, "HCCL timeout on device 0");
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
	ASSERT_CELL('b', "NEW");
}

/* Eight authors have one NEW failure each, all in one test, or each in a test of its own. Returns whether the breaker has tripped. */
static bool eight_authors_trip_the_breaker(bool is_one_test, bool has_message)
{
	static const char *const AUTHORS[] = {"ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal"};
	static const char *const NAMES[] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
	struct test_result tests[ARRAY_LEN(NAMES)];
	struct change_view *v;
	bool has_moved, has_tripped;

	rig_register_npu(LEVEL_3);
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		tests[i] = result(TEST_PASS, NULL);
		tests[i].name = (char *)NAMES[i];
	}
	push('B');
	report_tests('B', 1, tests, ARRAY_LEN(NAMES), T0 + HOUR);
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		char head = (char)('a' + i);
		char message[64];
		struct test_result red = result(TEST_FAIL, has_message ? message : NULL);

		snprintf(message, sizeof(message), "HCCL timeout on the device of %s", AUTHORS[i]);
		pull(&(struct pr){
		    .number = 1 + (int64_t)i, .head = head, .author = AUTHORS[i], .base = 'B', .file = "a.c"});
		red.name = (char *)NAMES[is_one_test ? 0 : i];
		report_tests(head, 1, &red, 1, T0 + HOUR + (int64_t)i);
	}
	settle(&has_moved);
	v = rig_view_of(0, sha('h'));
	assert_string_equal(attribution_name(find_cell_of(v, NAMES[is_one_test ? 0 : 7])->attribution), "NEW");
	has_tripped = v->accelerators[0].is_unhealthy;
	change_view_free(v);
	return has_tripped;
}

static void authors_with_one_new_failure_trip_the_breaker(void **state)
{
	(void)state;
	assert_true(eight_authors_trip_the_breaker(true, true));
}

static void authors_with_one_new_failure_without_a_message_trip_the_breaker(void **state)
{
	(void)state;
	assert_true(eight_authors_trip_the_breaker(true, false));
}

static void authors_with_different_new_failures_do_not_trip_the_breaker(void **state)
{
	(void)state;
	assert_false(eight_authors_trip_the_breaker(false, true));
}

static void flakes_of_others_are_a_hint(void **state)
{
	bool has_moved;

	(void)state;
	begin_two_pulls(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	report('a', TEST_FAIL, "HCCL timeout on device 0");
	report_at('b', 2, TEST_PASS, NULL, T0 + 2 * HOUR);
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
	ASSERT_REASON('a', "seen on 1 other change, and passed again on 1 of them");
	flake(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'B', .file = "c.c"});
	settle(&has_moved);
	assert_true(has_moved);
	ASSERT_CELL('a', "NEW");
	ASSERT_REASON('a', "seen on 2 other changes, and passed again on 2 of them");
}

static void related_or_unknown_changes_are_not_evidence(void **state)
{
	static const struct pr CASES[] = {
	    {.author = "Alice", .base = 'B', .file = "b.c"},
	    {.author = "", .base = 'B', .file = "b.c"},      /* not known: it may be the same person */
	    {.author = "carol", .base = 'B', .file = "b.c"}, /* one witness, twice */
	    {.author = "bob", .base = 'B', .file = "c.c"},   /* the same mistake may be in both */
	    {.author = "bob", .base = 'B', .file = "a.c"},
	    {.author = "bob", .base = 'B', .file = "/"}, /* not all of them are known */
	    {.author = "bob", .base = 'B'},
	    {.author = "bob", .file = "b.c"}, /* its base is unknown */
	    {.author = "bob", .base = 'B', .file = "b.c", .base_ref = "release"},
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct pr other = CASES[i];

		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		push('B');
		report('B', TEST_PASS, NULL);
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
		flake(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'B', .file = "c.c"});
		other.number = 2;
		other.head = 'b';
		if (!other.author[0])
			other.author = NULL;
		flake(&other);
		report('a', TEST_FAIL, SPECIFIC);
		ASSERT_REASON('a', "likely flaky");
		assert_false(has_reason('a', "passed again on 2"));
	}
}

/* Learnt from data: a message that other tests have had, too, is no evidence about this one. */
static void a_message_that_other_tests_have_is_not_evidence(void **state)
{
	struct test_result tests[] = {result(TEST_PASS, NULL), result(TEST_FAIL, SPECIFIC)};
	bool has_moved;

	(void)state;
	tests[1].name = (char *)"another";
	push('B');
	report_at('B', 1, TEST_FAIL, SPECIFIC, T0 + HOUR);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "BASE");
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	report_tests('b', 1, tests, 2, T0 + HOUR); /* llama3 passed there */
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

static void many_tests_of_one_incident_do_not_make_it_general(void **state)
{
	struct test_result tests[] = {
	    result(TEST_FAIL, SPECIFIC), result(TEST_FAIL, SPECIFIC), result(TEST_PASS, NULL)};
	bool has_moved;

	(void)state;
	tests[1].name = (char *)"another";
	tests[2].name = (char *)"third";
	push('B');
	report_tests('B', 1, tests, 3, T0 + HOUR);
	for (char head = 'a'; head < 'e'; head++) {
		char author[] = {head, '\0'};

		pull(&(struct pr){.number = head, .head = head, .author = author, .base = 'B', .file = "x.c"});
		report_tests(head, 1, tests, 3, T0 + HOUR);
	}
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
	ASSERT_CELL('d', "BASE");
}

/* Finding 16: a failure on the base during an outage does not excuse a test that is red alone. */
static void an_outage_of_the_base_excuses_nothing(void **state)
{
	struct test_result tests[6];
	static const char *const NAMES[] = {"llama3", "b", "c", "d", "e", "f"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
		tests[i] = result(i < 4 ? TEST_FAIL : TEST_PASS, OTHER);
		tests[i].name = (char *)NAMES[i];
	}
	push('B');
	report_tests('B', 1, tests, 6, T0 + HOUR);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, tests, 6, T0 + HOUR);
	ASSERT_CELL('a', "UNCLASSIFIED");
	for (size_t i = 1; i < 4; i++) {
		tests[i] = result(TEST_PASS, NULL);
		tests[i].name = (char *)NAMES[i];
	}
	report_tests('a', 2, tests, 6, T0 + 2 * HOUR);
	ASSERT_CELL('a', "UNCLASSIFIED");
	report_tests('B', 2, tests, 6, T0 + 20 * HOUR); /* red there alone, and later */
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B'});
	report_tests('b', 1, tests, 6, T0 + 20 * HOUR);
	ASSERT_CELL('b', "BASE");
}

/* The answer for one message is not the answer for another one of the same job. */
static void an_outage_of_the_base_is_about_its_message(void **state)
{
	struct test_result tests[7];
	static const char *const NAMES[] = {"llama3", "b", "c", "d", "e", "f", "g"};
	struct change_view *v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
		tests[i] = i < 5 ? result(TEST_FAIL, i < 4 ? OTHER : SPECIFIC) : result(TEST_PASS, NULL);
		tests[i].name = (char *)NAMES[i];
	}
	push('B');
	report_tests('B', 1, tests, 7, T0 + HOUR);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, tests, 7, T0 + HOUR);
	v = rig_view_of(1, NULL);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(
		    attribution_name(find_cell_of(v, NAMES[i])->attribution), i < 4 ? "UNCLASSIFIED" : "BASE");
	change_view_free(v);
}

static void most_tests_of_a_job_with_one_message_are_an_outage(void **state)
{
	struct test_result tests[6];
	static const char *const NAMES[] = {"llama3", "b", "c", "d", "e", "f"};
	struct change_view *v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tests); i++) {
		tests[i] = result(TEST_PASS, NULL);
		tests[i].name = (char *)NAMES[i];
	}
	push('B');
	report_tests('B', 1, tests, 6, T0 + HOUR);
	for (size_t i = 0; i < 4; i++) {
		tests[i] = result(TEST_FAIL, OTHER);
		tests[i].name = (char *)NAMES[i];
	}
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_tests('a', 1, tests, 6, T0 + HOUR);
	v = rig_view_of(1, NULL);
	assert_string_equal(find_cell(v)->reason, "looks like infrastructure; green on the merge base");
	change_view_free(v);
	tests[3].message = (char *)"something else";
	report_tests('a', 2, tests, 6, T0 + HOUR);
	ASSERT_CELL('a', "NEW");
}

static void a_change_that_makes_a_test_flaky(void **state)
{
	(void)state;
	for (char c = 'B'; c <= 'Y'; c++) {
		push_by(c, "merger", T0);
		report_at(c, 1, TEST_PASS, NULL, T0 + HOUR);
		push_by(c, "merger", T0);
	}
	for (int i = 0; i < 16; i++) { /* the number of passed runs of other changes */
		pull(&(struct pr){.number = 100 + i, .head = (char)('0' + i), .author = "bob", .base = 'Y'});
		report_at((char)('0' + i), 1, TEST_PASS, NULL, T0 + HOUR);
	}
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'Y', .file = "a.c"});
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + HOUR);
	report_at('a', 2, TEST_PASS, NULL, T0 + 2 * HOUR);
	report_at('a', 3, TEST_FAIL, SPECIFIC, T0 + 3 * HOUR);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

static void failures_on_a_broken_base_are_not_evidence(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "NEW");
	push_by('C', "alice", T0 + HOUR); /* it is merged all the same */
	report('C', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'C', .file = "b.c"});
	report('b', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('b', "BASE");
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
	push_by('D', "alice", T0 + 2 * HOUR); /* and reverted, untested */
	pull(&(struct pr){.number = 4, .head = 'e', .author = "alice", .base = 'D', .file = "a.c"});
	report('e', TEST_FAIL, SPECIFIC); /* and now proposed again */
	ASSERT_CELL('e', "UNCLASSIFIED");
}

static void a_reland_is_not_excused_by_its_first_landing(void **state)
{
	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + MINUTE);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .is_closed = true});
	push_by('C', "alice", T0 + HOUR);
	report('C', TEST_FAIL, SPECIFIC);
	push_by('D', "alice", T0 + 2 * HOUR); /* the revert, untested */
	pull(&(struct pr){.number = 4, .head = 'e', .author = "alice", .base = 'D', .file = "a.c"});
	report_at('e', 1, TEST_FAIL, SPECIFIC, T0 + 3 * HOUR);
	ASSERT_CELL('e', "UNCLASSIFIED");
}

/* Bob's change contains Alice's, so it is no evidence about Alice's other change with the same mistake. */
static void a_stack_of_two_authors_counts_once(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 3, .head = 'c', .author = "alice", .base = 'B', .file = "c.c"});
	flake(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	flake(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "a.c"});
	flake(&(struct pr){.number = 4, .head = 'e', .author = "eve", .base = 'B', .file = "e.c"});
	report('c', TEST_FAIL, SPECIFIC);
	ASSERT_REASON('c', ", and passed again on 1 of them"); /* of eve's alone */
	flake(&(struct pr){.number = 5, .head = 'f', .author = "frank", .base = 'B', .file = "f.c"});
	settle(&has_moved);
	ASSERT_REASON('c', ", and passed again on 2 of them");
}

/* Landed and reverted between two runs of the branch; changes that branched off there failed with it. */
static void a_breakage_between_two_runs_of_the_branch(void **state)
{
	static const char *const AUTHORS[] = {"alice", "carol"};

	for (size_t i = 0; i < ARRAY_LEN(AUTHORS); i++) {
		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		push('B');
		report('B', TEST_PASS, NULL);
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
		report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + MINUTE);
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .is_closed = true});
		push_by('C', "alice", T0 + HOUR);
		pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'C', .file = "b.c"});
		report_at('b', 1, TEST_FAIL, SPECIFIC, T0 + 2 * HOUR);
		push_by('D', "bob", T0 + 3 * HOUR); /* the revert */
		report_at('D', 1, TEST_PASS, NULL, T0 + 4 * HOUR);
		pull(&(struct pr){.number = 4, .head = 'e', .author = AUTHORS[i], .base = 'D', .file = "a.c"});
		report_at('e', 1, TEST_FAIL, SPECIFIC, T0 + 5 * HOUR);
		ASSERT_CELL('e', "NEW");
	}
}

/* ---- experiments ---- */

/* The registry while the runner accepts experiments, or does not. share: of its time, in permille. */
static void set_reruns_and_share(const char *reruns, int share)
{
	char *path = rig_path();
	struct db *d;

	rig_close();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d),
	    "INSERT INTO runner (accelerator, name, kind, target, is_gone, reruns)"
	    " VALUES ('npu', 'ci', 'github', 'Ascend/pytorch', 0, ?1)"
	    " ON CONFLICT (accelerator, name) DO UPDATE SET reruns = excluded.reruns",
	    V_TEXT(reruns));
	db_exec(db_txn(d),
	    "INSERT INTO accelerator (name, title, level, oncall, is_gone, first_ms,"
	    " experiment_share) VALUES ('npu', 'NPU', 2, '[]', 0, 0, ?1)"
	    " ON CONFLICT (name) DO UPDATE SET experiment_share = excluded.experiment_share",
	    V_INT(share));
	assert_int_equal(db_commit(d), 0);
	db_close(d);
	free(path);
	rig_open();
}

static void set_reruns(const char *reruns) { set_reruns_and_share(reruns, 100); }

struct experiment_job {
	const char *name;        /* of the job; NULL: none */
	const char *message;     /* NULL: it passed */
	const char *test;        /* NULL: llama3 */
	bool is_skipped, is_old; /* old: the next one is its retry */
};

/* An experiment for one test, with its jobs, as rows; then the changes that it affects are due. Returns the id of its
 * last job. */
static int64_t experiment_of(const char *cause, const char *asked, char head, const char *side, char commit,
    const char *state, const char *runner, const struct experiment_job jobs[2])
{
	char *path = rig_path();
	int64_t id = id_of(head), run, e, job = 0, test = 0;
	struct db *d;
	struct txn *txn;

	rig_close();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	txn = db_txn(d);
	e = db_exec_int(txn, 0,
	    "INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause, round, "
	    "side,"
	    " sha, state, created_ms, expires_ms) VALUES (?1, 'npu', ?2, 'x', ?6, 1, ?3, ?4, "
	    "?5,"
	    " 1, 2) RETURNING id",
	    V_INT(id), V_TEXT(runner), V_TEXT(side), V_TEXT(sha(commit)), V_TEXT(state), V_TEXT(cause));
	run = db_exec_int(txn, 0,
	    "INSERT INTO change (kind, repository, repository_key, head_sha, state, created_ms,"
	    " active_ms, experiment_id) VALUES ('experiment', 'x', 'x', ?1, 'open', 1, 1, ?2)"
	    " RETURNING id",
	    V_TEXT(sha(commit)), V_INT(e));
	db_exec(txn, "UPDATE experiment SET run_change_id = ?2 WHERE id = ?1", V_INT(e), V_INT(run));
	db_exec(txn, "INSERT INTO test (suite, name, dtype) VALUES ('model', ?1, '') ON CONFLICT DO NOTHING",
	    V_TEXT(asked));
	db_exec(txn,
	    "INSERT INTO experiment_test (experiment_id, test_id) SELECT ?1, id FROM test WHERE "
	    "name = ?2",
	    V_INT(e), V_TEXT(asked));
	for (size_t i = 0; i < 2 && jobs[i].name; i++) {
		job = db_exec_int(txn, 0,
		    "INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name,"
		    " run_id, run_attempt, status, digest, is_current, is_late, is_push, n_tests, "
		    "n_red,"
		    " reported_ms) VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM job), ?1, 'y', 'npu', ?2, 'CI', ?3, "
		    "'1', 1 + ?4, 'completed', "
		    "x'00', ?4,"
		    " 0, 0, 1, 0, 1) RETURNING id",
		    V_INT(run), V_TEXT(runner), V_TEXT(jobs[i].name), V_INT(!jobs[i].is_old));
		test =
		    db_int(d, 0, "SELECT id FROM test WHERE name = ?1", V_TEXT(jobs[i].test ? jobs[i].test : "llama3"));
		db_exec(txn,
		    "INSERT INTO result (job_id, ordinal, test_id, status, message)"
		    " VALUES (?1, 0, ?2, ?3, ?4)",
		    V_INT(job), V_INT(test),
		    V_TEXT(jobs[i].is_skipped ? "SKIP"
			   : jobs[i].message  ? "FAIL"
					      : "PASS"),
		    V_TEXT(jobs[i].message));
	}
	db_exec(txn, "INSERT INTO attribution_due SELECT id, 1, 1, 0, 1 FROM change WHERE kind ="
		     " 'pull_request' ON CONFLICT DO NOTHING");
	if (db_commit(d))
		fail_msg("%s", db_why(d)->text);
	db_close(d);
	free(path);
	rig_open();
	return job;
}

static int64_t experiment(char head, const char *side, char commit, const char *state, const char *runner,
    const struct experiment_job jobs[2])
{
	return experiment_of("auto", "llama3", head, side, commit, state, runner, jobs);
}

static void red_on_the_head_of_one_pull(char base)
{
	push('A');
	push('B');
	report('A', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = base, .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
}

static void an_experiment_on_the_head_proves_a_flake(void **state)
{
	int64_t job;
	bool has_moved;

	(void)state;
	red_on_the_head_of_one_pull('A');
	set_reruns("tests");
	ASSERT_CELL('a', "NEW");
	job = experiment('a', "head", 'a', "done", "ci", (struct experiment_job[2]){{.name = "test"}});
	settle(&has_moved);
	ASSERT_SHOWN('a', "FLAKY", job);
}

static void an_experiment_in_which_the_crash_moves_on_proves_nothing(void **state)
{
	bool has_moved;

	(void)state;
	red_on_the_head_of_one_pull('A');
	experiment_of("auto", "bert", 'a', "head", 'a', "done", "ci",
	    (struct experiment_job[2]){{.name = "test", .test = "bert"}}); /* known by name */
	experiment('a', "head", 'a', "done", "ci",
	    (struct experiment_job[2]){{.name = "test"}, {.name = "other", .test = "bert", .message = SPECIFIC}});
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
	experiment('a', "head", 'a', "done", "ci",
	    (struct experiment_job[2]){{.name = "test"}, {.name = "other", .test = "bert", .message = GENERAL}});
	settle(&has_moved);
	ASSERT_CELL('a', "FLAKY");
}

/* A run of the merge base has a message that many failures have, and an experiment there fails with another. */
static void an_experiment_that_fails_otherwise_proves_nothing(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_FAIL, GENERAL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report('a', TEST_FAIL, GENERAL);
	ASSERT_CELL('a', "UNCLASSIFIED");
	experiment('a', "base", 'B', "done", "ci", (struct experiment_job[2]){{.name = "test", .message = OTHER}});
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
	experiment('a', "base", 'B', "done", "ci", (struct experiment_job[2]){{.name = "test", .message = GENERAL}});
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
}

static void an_experiment_on_the_base_proves_a_breakage(void **state)
{
	int64_t job;
	bool has_moved;

	(void)state;
	red_on_the_head_of_one_pull('B');
	ASSERT_CELL('a', "UNCLASSIFIED");
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B'});
	report('b', TEST_FAIL, SPECIFIC);
	job = experiment(
	    'a', "base", 'B', "done", "ci", (struct experiment_job[2]){{.name = "test", .message = SPECIFIC}});
	settle(&has_moved);
	ASSERT_SHOWN('a', "BASE", job);
	ASSERT_SHOWN('b', "BASE", job); /* which has the same merge base */
}

static void a_retry_of_an_experiment_does_not_hide_that_the_base_was_green(void **state)
{
	bool has_moved;

	(void)state;
	red_on_the_head_of_one_pull('B');
	experiment('a', "base", 'B', "done", "ci",
	    (struct experiment_job[2]){{.name = "test", .is_old = true}, {.name = "test", .message = SPECIFIC}});
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
}

static void green_on_the_base_and_red_twice_here(void **state)
{
	struct change_view *v;
	bool has_moved;
	int64_t job;

	(void)state;
	red_on_the_head_of_one_pull('B');
	experiment('a', "head", 'a', "done", "ci", (struct experiment_job[2]){{.name = "test", .message = SPECIFIC}});
	job = experiment('a', "base", 'B', "done", "ci", (struct experiment_job[2]){{.name = "test"}});
	settle(&has_moved);
	ASSERT_SHOWN('a', "NEW", job);
	v = rig_view_of(1, NULL);
	assert_non_null(strstr(find_cell(v)->reason, "and red twice here"));
	change_view_free(v);
	assert_int_equal(stored_number("SELECT needs FROM verdict v JOIN change c ON c.id ="
				       " v.change_id WHERE c.kind = 'pull_request'"),
	    0);
}

static void results_of_experiments_that_prove_nothing(void **state)
{
	static const struct {
		const char *what, *state, *runner;
		struct experiment_job jobs[2];
	} CASES[] = {
	    {"it has not ended", "started", "ci", {{.name = "test"}}},
	    {"its results are void", "void", "ci", {{.name = "test"}}},
	    {"another runner", "done", "lab", {{.name = "test"}}},
	    {"its jobs disagree", "done", "ci", {{.name = "test"}, {.name = "more", .message = SPECIFIC}}},
	    {"another test", "done", "ci", {{.name = "test", .test = "another"}}},
	    {"no result", "done", "ci", {{.name = NULL}}},
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		bool has_moved;

		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		red_on_the_head_of_one_pull('A');
		experiment('a', "head", 'a', CASES[i].state, CASES[i].runner, CASES[i].jobs);
		settle(&has_moved);
		ASSERT_CELL('a', "NEW");
	}
}

/* This holds after any number of other experiments there: rounds of a `stress`, and those for other pull requests on
 * the same merge base. */
static void an_outcome_counts_after_many_other_experiments(void **state)
{
	enum { N_OTHERS = 21 };
	static const struct experiment_job RED[2] = {{.name = "test", .message = SPECIFIC}},
					   GREEN[2] = {{.name = "test"}},
					   OTHER_GREEN[2] = {{.name = "test", .test = "another"}};
	bool has_moved;

	red_on_the_head_of_one_pull('B');
	experiment('a', "base", 'B', "done", "ci", RED);
	for (int i = 0; i < N_OTHERS; i++)
		experiment_of("auto", "another", 'a', "base", 'B', "done", "ci", OTHER_GREEN);
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
	rig_teardown(state);
	rig_setup(state);
	red_on_the_head_of_one_pull('B');
	experiment('a', "head", 'a', "done", "ci", GREEN);
	for (int i = 0; i < N_OTHERS; i++)
		experiment_of("stress", "llama3", 'a', "head", 'a', "done", "ci", RED);
	settle(&has_moved);
	ASSERT_CELL('a', "FLAKY");
}

/* The name of the job may differ if there is no doubt which job it replaces. */
static void a_job_of_an_experiment_with_another_name(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	report_job('B', "ci", "py310", 1, NULL);
	report_job('B', "ci", "py312", 1, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_job('a', "ci", "py310", 1, SPECIFIC);
	experiment('a', "head", 'a', "done", "ci", (struct experiment_job[2]){{.name = "again"}});
	settle(&has_moved);
	ASSERT_CELL('a', "FLAKY");
	report_job('a', "ci", "py312", 1, NULL); /* now it is ambiguous which of them it replaces */
	ASSERT_CELL('a', "NEW");
	experiment('a', "head", 'a', "done", "ci", (struct experiment_job[2]){{.name = "py310"}, {.name = "py312"}});
	settle(&has_moved);
	ASSERT_CELL('a', "FLAKY");
}

/* Each job of a matrix is judged by the experiment's result for that job. */
static void an_experiment_decides_each_job_by_itself(void **state)
{
	static const struct experiment_job RED_IN_ONE[2] = {{.name = "py310", .message = SPECIFIC}, {.name = "py312"}};
	bool has_moved;

	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	report_job('a', "ci", "py310", 1, SPECIFIC);
	report_job('a', "ci", "py312", 1, NULL);
	experiment('a', "base", 'B', "done", "ci", RED_IN_ONE);
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B'});
	report_job('b', "ci", "py310", 1, SPECIFIC);
	report_job('b', "ci", "py312", 1, SPECIFIC);
	ASSERT_CELL('b', "NEW"); /* like py312, which is green there */
}

/* The runner of this run has the test in one job only; other runners do not matter. */
static void a_job_of_another_runner_causes_no_ambiguity(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .has_two_runners = true});
	report_job('a', "ci", "py310", 1, SPECIFIC);
	report_job('a', "lab", "py310", 1, NULL);
	experiment('a', "head", 'a', "done", "ci", (struct experiment_job[2]){{.name = "again"}});
	settle(&has_moved);
	ASSERT_CELL('a', "FLAKY");
}

static void an_experiment_that_skips_the_test_in_its_job_proves_nothing(void **state)
{
	static const struct {
		const char *side;
		char commit;
		const char *message; /* in py312 */
	} CASES[] = {{"head", 'a', NULL}, {"base", 'B', SPECIFIC}};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		bool has_moved;

		if (i) {
			rig_teardown(state);
			rig_setup(state);
		}
		push('B');
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
		report_job('a', "ci", "py310", 1, SPECIFIC);
		experiment('a', CASES[i].side, CASES[i].commit, "done", "ci",
		    (struct experiment_job[2]){
			{.name = "py310", .is_skipped = true}, {.name = "py312", .message = CASES[i].message}});
		settle(&has_moved);
		ASSERT_CELL('a', "UNCLASSIFIED");
	}
}

static void similarity_excuses_nothing_with_experiments(void **state)
{
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	flake(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	flake(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'B', .file = "c.c"});
	set_reruns("tests");
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "NEW");
	experiment_of("stress", "llama3", 'a', "head", 'a', "expired", "ci",
	    (struct experiment_job[2]){{.name = NULL}}); /* requested by a member, not by the rules */
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
	experiment(
	    'a', "head", 'a', "expired", "ci", (struct experiment_job[2]){{.name = NULL}}); /* the rules decide alone */
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
}

/* The runner accepts experiments, but its accelerator has no time for them: the rules decide alone. */
static void an_accelerator_without_a_share_waits_for_no_experiment(void **state)
{
	(void)state;
	for (int share = 100; share >= 0; share -= 100) {
		if (!share) {
			rig_teardown(state);
			rig_setup(state);
		}
		for (char commit = 'B'; commit <= 'D'; commit++)
			push(commit);
		report('B', TEST_FAIL, SPECIFIC);
		report('D', TEST_FAIL, SPECIFIC);
		two_more_are_red('E');
		set_reruns_and_share("tests", share);
		pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'C', .file = "a.c"});
		report('a', TEST_FAIL, SPECIFIC);
		ASSERT_CELL('a', share ? "UNCLASSIFIED" : "BASE");
	}
}

/* Neighbouring runs decide whether one red run of the branch counts. */
static void a_single_red_run(void **state)
{
	bool has_moved;

	(void)state;
	for (char commit = 'B'; commit <= 'F'; commit++) {
		push(commit);
		if (commit < 'E')
			report(commit, commit == 'D' ? TEST_FAIL : TEST_PASS, SPECIFIC);
	}
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'E', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "UNCLASSIFIED");
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'D', .file = "b.c"});
	report('b', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('b', "BASE");
	flake(&(struct pr){.number = 4, .head = 'd', .author = "dave", .base = 'C', .file = "d.c"});
	settle(&has_moved);
	ASSERT_CELL('b', "UNCLASSIFIED"); /* it may have been a flake */
	pull(&(struct pr){.number = 5, .head = 'e', .author = "eve", .base = 'D', .file = "e.c"});
	report('e', TEST_FAIL, OTHER);
	report_at('D', 2, TEST_FAIL, OTHER, T0 + 2 * HOUR);
	settle(&has_moved);
	ASSERT_CELL('e', "BASE");
	report('F', TEST_PASS, SPECIFIC);
	settle(&has_moved);
	ASSERT_CELL('e', "UNCLASSIFIED"); /* red once, and green before and after it */
	pull(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'F', .file = "c.c"});
	report('c', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('c', "NEW");
}

static void a_known_issue_explains_it(void **state)
{
	struct add_known k = {.pattern = "model/llama*", .url = "https://example.org/1", .now_ms = T0};
	struct remove_known gone = {.now_ms = T0};
	struct change_view *v;
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_PASS, NULL);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "NEW");
	DO_OK(store_add_known, &k);
	settle(&has_moved);
	assert_true(has_moved);
	ASSERT_CELL('a', "KNOWN");
	v = rig_view_of(1, NULL);
	assert_string_equal(find_cell(v)->evidence_url, "https://example.org/1");
	change_view_free(v);
	gone.id = k.id;
	DO_OK(store_remove_known, &gone);
	settle(&has_moved);
	ASSERT_CELL('a', "NEW");
}

static void a_push_is_compared_with_its_parent(void **state)
{
	(void)state;
	push('B');
	push('C');
	push('D');
	report('B', TEST_PASS, NULL);
	report('C', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('C', "NEW");
	report('D', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('D', "BASE");
}

static void a_dtype_is_a_test_of_its_own(void **state)
{
	struct test_result tests[] = {result(TEST_FAIL, SPECIFIC), result(TEST_PASS, NULL)};
	struct change_view *v;

	(void)state;
	tests[0].dtype = (char *)"bf16";
	tests[1].dtype = (char *)"fp32";
	push('B');
	report_tests('B', 1, tests, 2, T0);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B'});
	tests[1] = result(TEST_FAIL, SPECIFIC);
	tests[1].dtype = (char *)"fp32";
	report_tests('a', 1, tests, 2, T0 + HOUR);
	v = rig_view_of(1, NULL);
	assert_int_equal(v->n_verdicts, 2);
	assert_string_equal(v->verdicts[0].dtype, "bf16");
	assert_int_equal(v->verdicts[0].attribution, ATTRIBUTION_BASE);
	assert_string_equal(v->verdicts[1].dtype, "fp32");
	assert_int_equal(v->verdicts[1].attribution, ATTRIBUTION_NEW);
	change_view_free(v);
}

static void the_worst_of_the_last_attempts_is_the_cell(void **state)
{
	static const enum test_status ORDER[] = {TEST_SKIP, TEST_DONE, TEST_PASS, TEST_MISS, TEST_ERROR, TEST_FAIL};
	struct test_result tests[ARRAY_LEN(ORDER)];
	struct change_view *v;
	int attempt = 0;

	(void)state;
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice"});
	for (size_t n = 1; n <= ARRAY_LEN(ORDER); n++) {
		for (size_t i = 0; i < n; i++)
			tests[i] = result(ORDER[i], SPECIFIC);
		attempt++;
		report_tests('a', attempt, tests, n, T0 + attempt);
		v = rig_view_of(1, NULL);
		assert_int_equal(find_cell(v)->status, ORDER[n - 1]);
		change_view_free(v);
	}
	attempt++;
	report_at('a', attempt, TEST_PASS, NULL, T0 + attempt); /* the last one counts */
	v = rig_view_of(1, NULL);
	assert_int_equal(find_cell(v)->status, TEST_PASS);
	assert_null(find_cell(v)->reason);
	assert_int_equal(v->accelerators[0].n_jobs, 1);
	change_view_free(v);
}

/* B8: a test without a result is a problem of the vendor, even if a failure of it would be excused. */
static void a_test_without_a_result_is_not_attributed(void **state)
{
	struct add_known k = {.pattern = "model/llama*", .url = "https://example.org/1", .now_ms = T0};
	struct change_view *v;
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_MISS, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report_at('a', 1, TEST_PASS, NULL, T0 + HOUR);
	report_at('a', 2, TEST_MISS, SPECIFIC, T0 + 2 * HOUR);
	DO_OK(store_add_known, &k);
	settle(&has_moved);
	v = rig_view_of(1, NULL);
	assert_int_equal(find_cell(v)->status, TEST_MISS);
	assert_int_equal(find_cell(v)->attribution, ATTRIBUTION_UNCLASSIFIED);
	assert_null(find_cell(v)->reason);
	assert_null(find_cell(v)->evidence_url);
	assert_int_equal(find_cell(v)->evidence_job, 0);
	change_view_free(v);
}

static void how_cells_differ_from_the_base(void **state)
{
	struct test_result base[] = {result(TEST_PASS, NULL), result(TEST_FAIL, OTHER), result(TEST_PASS, NULL),
	    result(TEST_PASS, NULL), result(TEST_PASS, NULL)};
	struct test_result head[] = {result(TEST_FAIL, SPECIFIC), result(TEST_PASS, NULL), result(TEST_SKIP, NULL),
	    result(TEST_PASS, NULL), result(TEST_PASS, NULL)};
	static const char *const NAMES[] = {"llama3", "mended", "skipped", "same", "gone"};
	struct change_view *v;
	struct base_delta *d;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		base[i].name = head[i].name = (char *)NAMES[i];
	push('B');
	push('C');
	report_tests('B', 1, base, 5, T0);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'C'});
	report_tests('a', 1, head, 4, T0 + HOUR);
	v = rig_view_of(1, NULL);
	d = &v->accelerators[0].delta;
	assert_string_equal(d->base_sha, sha('B'));
	assert_int_equal(d->distance, 1);
	assert_int_equal(d->n_newly_failing, 1);
	assert_int_equal(d->n_fixed, 1);
	assert_string_equal(d->fixed[0], "model/mended");
	assert_int_equal(d->n_disappeared, 1);
	assert_string_equal(d->disappeared[0], "model/gone");
	assert_int_equal(d->n_newly_skipped, 1);
	assert_string_equal(d->newly_skipped[0], "model/skipped");
	change_view_free(v);
}

static void old_failures_are_deleted(void **state)
{
	struct apply_retention keep = {.failures_before_ms = T0}, drop = {.failures_before_ms = T0 + DAY};

	(void)state;
	begin_two_pulls(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	DO_OK(store_apply_retention, &keep);
	assert_false(keep.has_more);
	DO_OK(store_apply_retention, &drop);
	assert_true(drop.has_more);
	report('a', TEST_FAIL, SPECIFIC);
	ASSERT_CELL('a', "NEW");
}

/* Each as the author of its change and the hours since T0. */
static void assert_failures(const char *expected)
{
	char *path = rig_path(), *text;
	struct db *d;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	text = db_text_values(db_view(d),
	    "SELECT group_concat(x, ' ') FROM (SELECT c.author || ' ' || ((f.at_ms - ?1) / ?2) AS x"
	    " FROM failure f JOIN change c ON c.id = f.change_id ORDER BY f.at_ms) listed",
	    VALUES(V_INT(T0), V_INT(HOUR)));
	assert_int_equal(db_status(d), 0);
	assert_string_equal(text ? text : "", expected);
	db_close(d);
	FREE_ALL(path, text);
}

static void newer_failures_of_an_old_change_are_kept(void **state)
{
	struct apply_retention drop = {.failures_before_ms = T0 + DAY};

	(void)state;
	push_by('B', "erin", T0 + 400 * DAY); /* the clock was wrong */
	pull(&(struct pr){.number = 2, .head = 'b', .author = "bob"});
	pull(&(struct pr){.number = 3, .head = 'c', .author = "carol"});
	pull(&(struct pr){.number = 4, .head = 'd', .author = "dave"});
	report_at('B', 1, TEST_FAIL, SPECIFIC, T0);
	report_at('b', 1, TEST_FAIL, SPECIFIC, T0 + HOUR);
	report_at('c', 1, TEST_FAIL, SPECIFIC, T0 + 2 * HOUR);
	report_at('b', 2, TEST_FAIL, SPECIFIC, T0 + DAY + 3 * HOUR);
	report_at('d', 1, TEST_FAIL, SPECIFIC, T0 + DAY + 4 * HOUR);
	assert_failures("erin 0 bob 1 carol 2 bob 27 dave 28");
	DO_OK(store_apply_retention, &drop);
	assert_failures("bob 27 dave 28");
}

/* ---- attributions that change later ---- */

static size_t count_due(void)
{
	struct claim_due_changes c = {.now_ms = T0 + DAY, .limit = 10000};
	size_t n;

	ASK_OK(store_claim_due_changes, &c);
	n = c.n;
	claim_due_changes_release(&c);
	return n;
}

/* Counts red heads on the same merge base once, and one that exists. */
static void multiply(char head, int n)
{
	char *path = rig_path();
	struct db *d;
	int64_t id = id_of(head);

	rig_close();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d),
	    "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
	    " INSERT INTO change (id, kind, repository, repository_key, head_sha, base_ref,"
	    " merge_base_sha, state, created_ms, active_ms) SELECT 1000 + i, kind, repository,"
	    " repository_key, printf('%040d', i), base_ref, merge_base_sha, state, created_ms,"
	    " active_ms FROM n, change WHERE id = ?1",
	    V_INT(id), V_INT(n));
	db_exec(db_txn(d),
	    "INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name, run_id,"
	    " run_attempt, status, verdict, is_current, is_late, is_push, n_tests, n_red,"
	    " reported_ms) SELECT 100000 + c.id, c.id, dispatch_id, accelerator, runner, workflow, name, run_id,"
	    " run_attempt, status, verdict, is_current, is_late, is_push, n_tests, n_red,"
	    " reported_ms FROM change c, job j WHERE j.change_id = ?1 AND c.id > 1000",
	    V_INT(id));
	assert_int_equal(db_commit(d), 0);
	db_close(d);
	free(path);
	rig_open();
}

static void a_run_of_the_branch_updates_all_changes_that_it_may_excuse(void **state)
{
	enum { MANY = 300 };
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	settle(&has_moved);
	multiply('a', MANY);
	assert_int_equal(count_due(), 0);
	report_at('B', 2, TEST_PASS, NULL, T0 + 2 * HOUR);
	assert_int_equal(count_due(), MANY + 1);
}

static void a_witness_stops_counting_when_its_base_is_red(void **state)
{
	bool has_moved;

	(void)state;
	for (char c = 'B'; c <= 'D'; c++) {
		push(c);
		if (c != 'C')
			report(c, TEST_PASS, NULL);
	}
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	flake(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	flake(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'C', .file = "c.c"});
	report('a', TEST_FAIL, SPECIFIC);
	settle(&has_moved);
	ASSERT_REASON('a', ", and passed again on 2 of them");
	report('C', TEST_FAIL, SPECIFIC); /* carol's base was not green */
	settle(&has_moved);
	ASSERT_REASON('a', ", and passed again on 1 of them");
}

/* The base of the second witness has these results of the test. */
static void two_witnesses(struct test_result *of_base, size_t n)
{
	bool has_moved;

	for (char c = 'B'; c <= 'D'; c++)
		push(c);
	report('B', TEST_PASS, NULL);
	report_tests('C', 1, of_base, n, T0 + HOUR);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	flake(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	flake(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'C', .file = "c.c"});
	report('a', TEST_FAIL, SPECIFIC);
	settle(&has_moved);
}

static void a_base_is_green_if_the_test_passed_and_is_not_red(void **state)
{
	struct test_result results[] = {result(TEST_PASS, NULL), result(TEST_SKIP, NULL)};

	(void)state;
	two_witnesses(results, ARRAY_LEN(results));
	ASSERT_REASON('a', ", and passed again on 2 of them");
}

static void a_base_is_not_green_if_one_result_of_the_test_is_red(void **state)
{
	struct test_result results[] = {result(TEST_PASS, NULL), result(TEST_FAIL, SPECIFIC), result(TEST_PASS, NULL)};

	(void)state;
	two_witnesses(results, ARRAY_LEN(results));
	ASSERT_REASON('a', ", and passed again on 1 of them");
}

static void a_retry_elsewhere_shows_that_it_is_flaky(void **state)
{
	bool has_moved;

	(void)state;
	begin_two_pulls(&(struct pr){.number = 2, .head = 'b', .author = "bob", .base = 'B', .file = "b.c"});
	flake(&(struct pr){.number = 3, .head = 'c', .author = "carol", .base = 'B', .file = "c.c"});
	report('a', TEST_FAIL, SPECIFIC);
	settle(&has_moved);
	ASSERT_REASON('a', ", and passed again on 1 of them");
	report_at('b', 2, TEST_PASS, NULL, T0 + 2 * HOUR);
	settle(&has_moved);
	ASSERT_REASON('a', ", and passed again on 2 of them");
}

/* Merged unchanged, and compared afterwards: GitHub returns its own head as the merge base, which is just as red. */
static void a_head_is_not_its_own_base(void **state)
{
	struct change_view *v;

	(void)state;
	push('a');
	report('a', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'a', .file = "a.c"});
	report_at('a', 2, TEST_FAIL, SPECIFIC, T0 + 2 * HOUR);
	v = rig_view_of(1, NULL);
	assert_int_equal(find_cell(v)->attribution, ATTRIBUTION_UNCLASSIFIED);
	change_view_free(v);
}

static void another_base_branch(void **state)
{
	struct claim_due_changes c = {.now_ms = T0 + DAY, .limit = 10};
	struct put_merge_base late = {.sha = sha('B'), .base = "main", .now_ms = T0},
			      put = {.sha = sha('C'), .base = "release", .now_ms = T0};
	bool has_moved;

	(void)state;
	push('B');
	report('B', TEST_FAIL, SPECIFIC);
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base = 'B', .file = "a.c"});
	report('a', TEST_FAIL, SPECIFIC);
	settle(&has_moved);
	ASSERT_CELL('a', "BASE");
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice", .base_ref = "release"});
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 1);
	assert_true(c.list[0].needs_merge_base);
	assert_true(c.list[0].needs_files); /* it touches others there */
	assert_string_equal(c.list[0].base_ref, "release");
	claim_due_changes_release(&c);
	settle(&has_moved);
	ASSERT_CELL('a', "UNCLASSIFIED");
	late.change_id = put.change_id = id_of('a');
	assert_int_equal(DO(store_put_merge_base, &late), ERR_CONFLICT); /* it was on its way */
	DO_OK(store_put_merge_base, &put);
}

/* The same head against another branch is another test: a pass on the first branch is no evidence. */
static void a_pass_on_another_base_does_not_count_as_another_attempt(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	const char *head = sha('a');

	(void)state;
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice"});
	report('a', TEST_PASS, NULL);
	apply(&(struct plan){.kind = PLAN_START,
		  .change_kind = CHANGE_PULL_REQUEST,
		  .repository = (char *)UPSTREAM,
		  .pull = {.number = 1,
		      .head_sha = (char *)head,
		      .base_ref = (char *)"release",
		      .author = (char *)"alice",
		      .labels = no_names,
		      .is_open = true,
		      .updated_ms = T0 + DAY},
		  .head_sha = (char *)head,
		  .event_ms = T0 + DAY,
		  .event_type = (char *)"pull_request",
		  .original_action = (char *)"edited",
		  .sent_action = (char *)"synchronize",
		  .starts_round = true,
		  .wants = wants,
		  .n_wants = 1},
	    T0 + DAY);
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + DAY + HOUR);
	ASSERT_CELL('a', "UNCLASSIFIED");
	report_at('a', 2, TEST_PASS, NULL, T0 + DAY + 2 * HOUR);
	report_at('a', 3, TEST_FAIL, SPECIFIC, T0 + DAY + 3 * HOUR);
	ASSERT_CELL('a', "FLAKY"); /* this one is */
}

static void a_clock_that_is_set_back(void **state)
{
	struct claim_due_changes c = {.now_ms = T0 + HOUR, .limit = 10};
	struct shift_clock shift = {.delta_ms = -DAY, .now_ms = T0 + HOUR};

	(void)state;
	pull(&(struct pr){.number = 1, .head = 'a', .author = "alice"});
	report_at('a', 1, TEST_FAIL, SPECIFIC, T0 + DAY + HOUR);
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 0);
	rig_topics = 0;
	DO_OK(store_shift_clock, &shift);
	assert_true(rig_topics & STORE_ATTRIBUTION);
	ASK_OK(store_claim_due_changes, &c);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.list[0].since_ms, T0 + HOUR);
	claim_due_changes_release(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(red_on_the_merge_base),
	    TEST(another_message_on_the_base_is_not_base),
	    TEST(numbers_distinguish_breakages),
	    TEST(the_first_landing_of_the_same_change_excuses_nothing),
	    TEST(a_commit_between_that_touches_the_same_file),
	    TEST(a_late_retry_may_have_tested_the_next_head),
	    TEST(others_wait_for_the_facts_of_a_failure),
	    TEST(the_merge_base_arrives_later),
	    TEST(the_cell_says_which_experiments_it_needs),
	    TEST(a_postponed_change_stays_due),
	    TEST(the_nearest_tested_commits_on_both_sides),
	    TEST(changes_on_the_commits_between),
	    TEST(a_breakage_that_was_fixed_and_came_back_in_between),
	    TEST(a_general_message_needs_more_of_the_branch),
	    TEST(passed_in_another_attempt),
	    TEST(a_crash_that_moves_to_another_test_is_not_fixed),
	    TEST(a_late_attempt_is_evidence),
	    TEST(tests_that_failed_together_pass_together),
	    TEST(a_crash_that_moves_to_another_job_is_not_fixed),
	    TEST(a_retry_on_another_device_is_not_evidence),
	    TEST(a_base_run_with_another_extension_is_not_evidence),
	    TEST(only_a_retry_of_the_same_job_counts),
	    TEST(a_pass_on_another_runner_does_not_count_as_a_retry),
	    TEST(a_failure_in_two_jobs_needs_an_excuse_for_each),
	    TEST(two_jobs_of_one_name_need_an_excuse_for_each),
	    TEST(many_jobs_with_one_message_are_one_failure),
	    TEST(too_many_red_jobs_are_not_compared),
	    TEST(a_general_message_is_compared_job_by_job),
	    TEST(a_test_that_a_job_has_twice_needs_an_excuse_for_each),
	    TEST(a_retry_that_omits_another_test_shows_its_own_duplicates),
	    TEST(the_same_message_of_two_authors_stays_new),
	    TEST(authors_with_one_new_failure_trip_the_breaker),
	    TEST(authors_with_one_new_failure_without_a_message_trip_the_breaker),
	    TEST(authors_with_different_new_failures_do_not_trip_the_breaker),
	    TEST(flakes_of_others_are_a_hint),
	    TEST(a_message_that_other_tests_have_is_not_evidence),
	    TEST(many_tests_of_one_incident_do_not_make_it_general),
	    TEST(an_outage_of_the_base_excuses_nothing),
	    TEST(an_outage_of_the_base_is_about_its_message),
	    TEST(most_tests_of_a_job_with_one_message_are_an_outage),
	    TEST(a_change_that_makes_a_test_flaky),
	    TEST(related_or_unknown_changes_are_not_evidence),
	    TEST(failures_on_a_broken_base_are_not_evidence),
	    TEST(a_reland_is_not_excused_by_its_first_landing),
	    TEST(a_stack_of_two_authors_counts_once),
	    TEST(a_breakage_between_two_runs_of_the_branch),
	    TEST(a_single_red_run),
	    TEST(an_experiment_on_the_head_proves_a_flake),
	    TEST(an_experiment_in_which_the_crash_moves_on_proves_nothing),
	    TEST(an_experiment_on_the_base_proves_a_breakage),
	    TEST(an_experiment_that_fails_otherwise_proves_nothing),
	    TEST(a_retry_of_an_experiment_does_not_hide_that_the_base_was_green),
	    TEST(green_on_the_base_and_red_twice_here),
	    TEST(results_of_experiments_that_prove_nothing),
	    TEST(an_outcome_counts_after_many_other_experiments),
	    TEST(a_job_of_an_experiment_with_another_name),
	    TEST(an_experiment_decides_each_job_by_itself),
	    TEST(a_job_of_another_runner_causes_no_ambiguity),
	    TEST(an_experiment_that_skips_the_test_in_its_job_proves_nothing),
	    TEST(similarity_excuses_nothing_with_experiments),
	    TEST(an_accelerator_without_a_share_waits_for_no_experiment),
	    TEST(a_known_issue_explains_it),
	    TEST(a_push_is_compared_with_its_parent),
	    TEST(a_dtype_is_a_test_of_its_own),
	    TEST(the_worst_of_the_last_attempts_is_the_cell),
	    TEST(a_test_without_a_result_is_not_attributed),
	    TEST(how_cells_differ_from_the_base),
	    TEST(old_failures_are_deleted),
	    TEST(newer_failures_of_an_old_change_are_kept),
	    TEST(a_run_of_the_branch_updates_all_changes_that_it_may_excuse),
	    TEST(a_witness_stops_counting_when_its_base_is_red),
	    TEST(a_base_is_green_if_the_test_passed_and_is_not_red),
	    TEST(a_base_is_not_green_if_one_result_of_the_test_is_red),
	    TEST(a_retry_elsewhere_shows_that_it_is_flaky),
	    TEST(a_head_is_not_its_own_base),
	    TEST(another_base_branch),
	    TEST(a_pass_on_another_base_does_not_count_as_another_attempt),
	    TEST(a_clock_that_is_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
