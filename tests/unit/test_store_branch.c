/* The order of a branch's commits from pushes that arrive in order, late, twice, with gaps and by force. */
#include "store_rig.h"

#include "db/db.h"
#include "store/branch_commits.h"
#include "store/changes.h"
#include "store/maintenance.h"
#include "store/plans.h"

#define MAIN "refs/heads/main"

/* "a" → forty of it. */
static const char *sha_of(char letter)
{
	static char text[64][41];
	static int next;
	char *sha = text[next++ % 64];

	memset(sha, letter, 40);
	sha[40] = '\0';
	return sha;
}

struct put {
	struct store_op op;
	const char *before; /* a letter, or NULL */
	const char *letters;
	const char *ref;
};

static int put_run(struct store_op *op, struct txn *d)
{
	struct put *p = CONTAINER_OF(op, struct put, op);
	struct branch_commit list[16];
	size_t n = strlen(p->letters);

	for (size_t i = 0; i < n; i++)
		list[i] = (struct branch_commit){sha_of(p->letters[i]), "alice", "Land it", T0 + (int64_t)i, NULL};
	branch_commits_put(d, UPSTREAM, p->ref, p->before ? sha_of(*p->before) : NULL, list, n);
	return 0;
}

static int put_submit(struct store *s, struct put *p)
{
	p->op.run = put_run;
	p->op.bytes = sizeof(*p);
	return store_submit(s, &p->op);
}

static void push_to(const char *ref, const char *before, const char *letters)
{
	struct put p = {.before = before, .letters = letters, .ref = ref};

	DO_OK(put_submit, &p);
}

static void push(const char *before, const char *letters) { push_to(MAIN, before, letters); }

/* The whole branch, "ab|cd": | is a gap, . a commit that is missing between. */
struct look {
	struct store_query q;
	const char *ref;
	char text[64];
};

static int look_run(struct store_query *q, const struct view *d)
{
	struct look *l = CONTAINER_OF(q, struct look, q);
	struct rows *r = db_rows(d,
	    "SELECT sha, position FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
	    " ORDER BY position",
	    V_TEXT(UPSTREAM), V_TEXT(l->ref));
	int64_t last = -1;
	size_t n = 0;

	while (rows_next(r)) {
		int64_t step = last < 0 ? 1 : rows_int(r, 1) - last;

		assert_true(rows_int(r, 1) >= 0);
		if (step >= BRANCH_GAP)
			l->text[n++] = '|';
		for (int64_t i = 1; step < BRANCH_GAP && i < step; i++)
			l->text[n++] = '.';
		last = rows_int(r, 1);
		l->text[n++] = rows_text(r, 0)[0];
	}
	l->text[n] = '\0';
	return 0;
}

static int look_submit(struct store *s, struct look *l)
{
	l->q.run = look_run;
	return store_query(s, &l->q);
}

static void expect_on(const char *ref, const char *expected)
{
	struct look l = {.ref = ref};

	ASK_OK(look_submit, &l);
	assert_string_equal(l.text, expected);
}

static void expect(const char *expected) { expect_on("main", expected); }

static void pushes_in_order(void **state)
{
	(void)state;
	push("a", "b");
	expect("ab");
	push("b", "cde");
	push("e", "f");
	expect("abcdef");
	push("b", "cde"); /* once more */
	push("a", "b");
	expect("abcdef");
	push_to("refs/heads/release/1", "d", "9");
	expect("abcdef");
	expect_on("release/1", "d9");
}

static void a_lost_push_arrives_late(void **state)
{
	(void)state;
	push("a", "b");
	push("d", "ef"); /* b → cd was lost */
	expect("ab|def");
	push("f", "g");
	push("b", "cd");
	expect("abcdefg");
	push("b", "cd");
	push("d", "ef");
	expect("abcdefg");
	push("g", "h");
	expect("abcdefgh");
}

static void several_lost_pushes_in_any_order(void **state)
{
	static const char *const orders[][3][2] = {
	    {{"b", "c"}, {"c", "d"}, {"d", "e"}},
	    {{"b", "c"}, {"d", "e"}, {"c", "d"}},
	    {{"c", "d"}, {"b", "c"}, {"d", "e"}},
	    {{"c", "d"}, {"d", "e"}, {"b", "c"}},
	    {{"d", "e"}, {"b", "c"}, {"c", "d"}},
	    {{"d", "e"}, {"c", "d"}, {"b", "c"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		push("a", "b");
		push("e", "f");
		for (size_t k = 0; k < 3; k++)
			push(orders[i][k][0], orders[i][k][1]);
		push("f", "0");
		expect("abcdef0");
		rig_teardown(NULL);
		rig_setup(NULL);
	}
}

static void the_first_push_arrives_second(void **state)
{
	(void)state;
	push("d", "e");
	push("a", "bcd");
	expect("abcde");
}

static void forced_pushes(void **state)
{
	(void)state;
	push("a", "bcd");
	push(NULL, "e"); /* d was replaced */
	expect("abcd|e");
	push("e", "f");
	expect("abcd|ef");
	push(NULL, "e"); /* again */
	push("a", "bcd");
	push("e", "f");
	expect("abcd|ef");
	push(NULL, "c"); /* back to a known commit */
	expect("abcd|ef");
	push("c", "1"); /* d is not its parent's only child, so their order is unknown */
	expect("abcd|ef|1");
	push("1", "2");
	expect("abcd|ef|12");
}

static void a_list_that_contains_known_commits(void **state)
{
	(void)state;
	push(NULL, "c"); /* the tip, as it was found at the first start */
	push("a", "bcd");
	expect("cd");
	push("d", "e");
	expect("cde");
}

static void a_gap_is_never_used_up(void **state)
{
	(void)state;
	push("a", "b");
	push("9", "0");
	for (int i = 0; i < 6; i++)
		push((const char *[]){"b", "c", "d", "e", "f", "1"}[i],
		    (const char *[]){"c", "d", "e", "f", "1", "2"}[i]);
	expect("abcdef12|90");
	push("0", "b"); /* a circle, which GitHub never sends */
	expect("abcdef12|90");
}

static char *listed(const char *after, const char *until, int limit, bool *ret_is_complete)
{
	struct list_commits l = {.repository = "PyTorch/pytorch",
	    .ref = MAIN,
	    .after = after ? sha_of(*after) : NULL,
	    .until = sha_of(*until),
	    .limit = limit};
	struct buf text = BUF_INIT(64);

	ASK_OK(store_list_commits, &l);
	for (size_t i = 0; i < l.n; i++) {
		buf_appendf(&text, "%c", l.list[i].sha[0]);
		assert_true(l.list[i].at_ms >= T0);
	}
	*ret_is_complete = l.is_complete;
	list_commits_release(&l);
	return buf_detach(&text);
}

static void expect_list(const char *after, const char *until, int limit, const char *expected, bool wants_complete)
{
	bool is_complete;
	char *text = listed(after, until, limit, &is_complete);

	assert_string_equal(text, expected);
	assert_int_equal(is_complete, wants_complete);
	free(text);
}

static void lists_the_commits_between_two_heads(void **state)
{
	(void)state;
	push("a", "bcd");
	push(NULL, "e");
	push("e", "f");
	expect_list("a", "d", 0, "bcd", true);
	expect_list("a", "d", 3, "bcd", true);
	expect_list("a", "d", 2, "cd", false);
	expect_list("c", "d", 1, "d", true);
	expect_list("b", "f", 0, "cdef", false); /* over the gap */
	expect_list("d", "e", 0, "e", false);
	expect_list("d", "f", 1, "f", false);
	expect_list("9", "c", 0, "c", false); /* 9 is unknown */
	expect_list(NULL, "c", 0, "c", false);
	expect_list("d", "b", 0, "b", false); /* the wrong way round */
	expect_list("a", "9", 0, "", false);
}

static void retention_deletes_old_commits(void **state)
{
	struct apply_retention r = {.deliveries_before_ms = T0, .results_before_ms = T0 + 2};

	(void)state;
	push("a", "bcd"); /* at T0 (a as b), T0, +1, +2 */
	DO_OK(store_apply_retention, &r);
	assert_true(r.has_more);
	expect("d");
	DO_OK(store_apply_retention, &r);
	assert_false(r.has_more);
	push("d", "e");
	expect("de");
}

/* The commits come from the plan of a push, whichever accelerators want it. */
static void a_plan_adds_the_commits_of_its_push(void **state)
{
	char nothing[] = "", title[] = "Land it", author[] = "bob";
	struct push_commit commits[] = {
	    {(char *)sha_of('b'), author, title, T0 - 5, NULL},
	    {(char *)sha_of('c'), nothing, nothing, T0 + DAY, NULL}, /* from the future */
	};
	struct plan p = {
	    .kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)sha_of('c'),
	    .before = (char *)sha_of('a'),
	    .ref = (char *)MAIN,
	    .commits = commits,
	    .n_commits = ARRAY_LEN(commits),
	    .event_type = "push",
	};
	struct list_commits l = {.repository = UPSTREAM, .ref = "main", .after = sha_of('a'), .until = sha_of('c')};
	struct note_head note = {.repository = UPSTREAM, .ref = MAIN, .head_sha = sha_of('a'), .now_ms = T0};

	(void)state;
	DO_OK(store_note_head, &note);
	for (int i = 0; i < 2; i++) {
		struct apply_plan op = {.plan = &p, .guid = "guid", .now_ms = T0};

		DO_OK(store_apply_plan, &op);
		expect("abc");
	}
	ASK_OK(store_list_commits, &l);
	assert_true(l.is_complete);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.list[0].author, "bob");
	assert_string_equal(l.list[0].title, "Land it");
	assert_true(l.list[0].at_ms == T0 - 5);
	assert_true(l.list[1].at_ms == T0);
	list_commits_release(&l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(pushes_in_order),
	    TEST(a_lost_push_arrives_late),
	    TEST(several_lost_pushes_in_any_order),
	    TEST(the_first_push_arrives_second),
	    TEST(forced_pushes),
	    TEST(a_list_that_contains_known_commits),
	    TEST(a_gap_is_never_used_up),
	    TEST(lists_the_commits_between_two_heads),
	    TEST(retention_deletes_old_commits),
	    TEST(a_plan_adds_the_commits_of_its_push),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
