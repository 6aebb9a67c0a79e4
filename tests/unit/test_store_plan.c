/* The effect of plans on changes, pull requests and dispatches, in any order and twice. */
#include "commands_rig.h"

static void each_runner_starts_once(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct apply_plan first = rig_start("opened", HEAD_A, 1, wants, 2), second;

	(void)state;
	assert_int_equal(first.n_new_dispatches, 2);
	assert_true(first.change_id > 0);
	assert_true(rig_topics & STORE_OUTBOX);
	assert_true(rig_topics & STORE_DISPATCHES);
	second = rig_start("opened", HEAD_A, 1, wants, 2);
	assert_int_equal(second.n_new_dispatches, 0);
	assert_int_equal(second.change_id, first.change_id);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, xpu queued*");
	ASSERT_SENT(T0 + 2000, "github_dispatch Ascend/pytorch[npu] opened; "
			       "webhook_dispatch https://ci.example.org/hook[xpu] opened");
	ASSERT_DISPATCHES(HEAD_A, "npu sent*, xpu acknowledged*");
}

static void a_planned_delivery_is_not_planned_again(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)HEAD_A,
	    .ref = (char *)"refs/heads/main",
	    .event_ms = T0,
	    .event_type = "push",
	    .sent_action = "",
	    .original_action = (char *)"",
	    .wants = wants,
	    .n_wants = 1};
	struct apply_plan op = {.guid = "g", .plan = &p, .now_ms = T0};
	struct has_push h = {.repository = "PyTorch/pytorch", .head_sha = HEAD_A};
	struct replay_delivery replay = {.guid = "g"};

	(void)state;
	rig_put("g", "{}");
	op.delivery_id = rig_newest_delivery();
	DO_OK(store_apply_plan, &op);
	assert_false(op.was_planned);
	assert_int_equal(op.n_new_dispatches, 1);
	DO_OK(store_apply_plan, &op);
	assert_true(op.was_planned);
	DO_OK(store_replay_delivery, &replay);
	DO_OK(store_apply_plan, &op);
	assert_true(op.was_planned);
	assert_int_equal(op.n_new_dispatches, 0);
	ASK_OK(store_has_push, &h);
	assert_true(h.is_known);
	op.delivery_id = 999;
	assert_int_equal(DO(store_apply_plan, &op), ERR_NOT_FOUND);
}

static void a_newer_head_supersedes(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct change_view *v;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	free(rig_send(T0 + 1000));
	rig_start("synchronize", HEAD_B, 2, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu superseded*, xpu superseded*");
	ASSERT_DISPATCHES(HEAD_B, "npu queued*, xpu queued*");
	ASSERT_SENT(T0 + 2000, "webhook_cancel https://ci.example.org/hook[xpu] opened; "
			       "github_dispatch Ascend/pytorch[npu] synchronize; "
			       "webhook_dispatch https://ci.example.org/hook[xpu] synchronize");
	v = rig_view_of(0, HEAD_A);
	assert_int_equal(v->state, CHANGE_SUPERSEDED);
	assert_int_equal(v->number, 1);
	change_view_free(v);
	v = rig_view_of(1, NULL);
	assert_string_equal(v->head_sha, HEAD_B);
	assert_int_equal(v->state, CHANGE_OPEN);
	change_view_free(v);
}

static void an_unsent_request_is_dropped(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	rig_start("synchronize", HEAD_B, 2, wants, 2);
	ASSERT_SENT(T0 + 2000, "github_dispatch Ascend/pytorch[npu] synchronize; "
			       "webhook_dispatch https://ci.example.org/hook[xpu] synchronize");
}

/* Both runners of a head: their vendor was down until the deadlines passed. */
static void expire_unsent(void)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct expire_dispatches e = {.now_ms = T0 + 3 * HOUR};
	struct claim_outbox c;

	rig_start("opened", HEAD_A, 0, wants, 2);
	c = rig_claim(REQUESTS, T0);
	for (size_t i = 0; i < c.n; i++)
		rig_done(&c.rows[i], OUTBOX_RETRY, T0 + 5 * HOUR);
	claim_outbox_release(&c);
	DO_OK(store_expire_dispatches, &e);
	ASSERT_DISPATCHES(HEAD_A, "npu expired*, xpu expired*");
}

static void an_expired_round_is_not_sent_together_with_the_next(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};

	(void)state;
	expire_unsent();
	rig_start("edited", HEAD_A, 4 * 3600, wants, 2);
	ASSERT_SENT(T0 + 6 * HOUR, "github_dispatch Ascend/pytorch[npu] synchronize; "
				   "webhook_cancel https://ci.example.org/hook[xpu] opened; "
				   "webhook_dispatch https://ci.example.org/hook[xpu] synchronize");
}

static void an_expired_draft_is_not_sent(void **state)
{
	static char *drops[] = {(char *)"npu", (char *)"xpu", NULL};

	(void)state;
	expire_unsent();
	rig_apply(&(struct rig_plan){.kind = PLAN_UPDATE,
	    .head = HEAD_A,
	    .event_ms = T0 + 4 * HOUR,
	    .action = "converted_to_draft",
	    .sent_action = "closed",
	    .drops = drops});
	ASSERT_SENT(T0 + 6 * HOUR, "github_closed Ascend/pytorch[npu] closed; "
				   "webhook_cancel https://ci.example.org/hook[xpu] opened");
}

static void a_head_pushed_back_starts_again(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("synchronize", HEAD_B, 2, wants, 1);
	rig_start("synchronize", HEAD_A, 3, wants, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu superseded");
	ASSERT_DISPATCHES(HEAD_B, "npu superseded*");
	ASSERT_SENT(T0 + 3000, "github_dispatch Ascend/pytorch[npu] synchronize");
}

static void stale_events_change_nothing(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct apply_plan late;

	(void)state;
	rig_start("synchronize", HEAD_B, 5, wants, 1);
	late = rig_start("opened", HEAD_A, 1, wants, 1);
	assert_true(late.is_stale);
	assert_int_equal(late.n_new_dispatches, 0);
	late = rig_close_pull(1, HEAD_A, 4);
	assert_true(late.is_stale);
	ASSERT_DISPATCHES(HEAD_B, "npu queued*");
	ASSERT_SENT(T0 + 5000, "github_dispatch Ascend/pytorch[npu] synchronize");
}

/* `labeled` came first although synchronize was earlier: the head is known by then, but
 * nothing of it has started. */
/* GitHub's times have whole seconds, and it does not guarantee the order. */
static void the_later_of_two_pushes_in_one_second_stays(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct rig_plan to_b = {.kind = PLAN_START,
	    .head = HEAD_B,
	    .before = HEAD_A,
	    .event_ms = T0 + 2000,
	    .action = "synchronize",
	    .wants = wants,
	    .n_wants = 1};
	struct rig_plan to_c = to_b, to_a = to_b;
	struct apply_plan op;

	(void)state;
	to_c.head = HEAD_C;
	to_c.before = HEAD_B;
	to_a.head = HEAD_A;
	to_a.before = HEAD_C;
	rig_start("opened", HEAD_A, 0, wants, 1);
	rig_apply(&to_c);
	op = rig_apply(&to_b);
	assert_true(op.is_stale);
	assert_int_equal(op.n_new_dispatches, 0);
	op = rig_apply(&to_c); /* under another GUID */
	assert_int_equal(op.n_new_dispatches, 0);
	ASSERT_DISPATCHES(HEAD_C, "npu queued*");
	op = rig_apply(&to_a); /* pushed back, still in that second */
	assert_false(op.is_stale);
	assert_int_equal(op.n_new_dispatches, 1);
}

static void a_stale_event_of_the_current_head_still_starts(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct apply_plan op;

	(void)state;
	rig_apply(&(struct rig_plan){.kind = PLAN_UPDATE, .head = HEAD_B, .event_ms = T0 + 6000, .action = "labeled"});
	op = rig_start("synchronize", HEAD_B, 5, wants, 1);
	assert_true(op.is_stale);
	assert_int_equal(op.n_new_dispatches, 1);
}

static void reopening_begins_one_round(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	free(rig_send(T0 + 1000));
	rig_close_pull(1, HEAD_A, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*");
	assert_int_equal(rig_start("reopened", HEAD_A, 3, wants, 1).n_new_dispatches, 1);
	assert_int_equal(rig_start("reopened", HEAD_A, 3, wants, 1).n_new_dispatches, 0);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu cancelled");
	assert_int_equal(rig_start("edited", HEAD_A, 4, wants, 1).n_new_dispatches, 1);
	assert_int_equal(rig_start("edited", HEAD_A, 4, wants, 1).n_new_dispatches, 0);
	assert_int_equal(rig_start("reopened", HEAD_A, 3, wants, 1).n_new_dispatches, 0);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu superseded, npu cancelled");
}

static void a_reopen_may_arrive_before_the_close(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(rig_start("reopened", HEAD_A, 3, wants, 1).n_new_dispatches, 1);
	assert_true(rig_close_pull(1, HEAD_A, 2).is_stale);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu superseded");
}

/* ---- closing ---- */

static void closed_is_sent_once_to_each_receiver_of_a_request(void **state)
{
	struct plan_want wants[] = {
	    GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("gcu", "Enflame/ci"), WEBHOOK_WANT("xpu")};
	struct change_view *v;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	free(rig_send(T0 + 1000));
	rig_start("synchronize", HEAD_B, 2, wants, 3);
	/* Only the webhook of the second head is sent. */
	for (struct claim_outbox c = rig_claim(1u << OUTBOX_WEBHOOK_DISPATCH, T0 + 2000); c.n;) {
		rig_done(&c.rows[0], OUTBOX_OK, 0);
		claim_outbox_release(&c);
	}
	rig_close_pull(1, HEAD_B, 3);
	rig_close_pull(1, HEAD_B, 3);
	ASSERT_DISPATCHES(HEAD_B, "gcu cancelled*, npu cancelled*, xpu cancelled*");
	ASSERT_SENT(T0 + 3000, "webhook_cancel https://ci.example.org/hook[xpu] synchronize; "
			       "github_closed Ascend/pytorch[npu] closed");
	v = rig_view_of(1, NULL);
	assert_int_equal(v->state, CHANGE_CLOSED);
	change_view_free(v);
}

static void a_request_that_is_being_sent_counts_as_received(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	c = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(c.n, 2);
	rig_close_pull(1, HEAD_A, 2);
	/* The next requests wait until the result of the first is known. */
	ASSERT_SENT(T0 + 2000, "");
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + 9000);
	rig_done(&c.rows[1], OUTBOX_RETRY, T0 + 9000);
	claim_outbox_release(&c);
	ASSERT_SENT(T0 + 20000, "webhook_cancel https://ci.example.org/hook[xpu] opened; "
				"github_closed Ascend/pytorch[npu] closed");
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu cancelled*");
}

static void a_refused_request_is_not_closed(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(REQUESTS, T0 + 1000);
	rig_done(&c.rows[0], OUTBOX_DEAD, 0);
	claim_outbox_release(&c);
	ASSERT_DISPATCHES(HEAD_A, "npu failed*");
	ASSERT_CELLS(HEAD_A, "npu dispatch/ci MISS");
	rig_close_pull(1, HEAD_A, 2);
	ASSERT_SENT(T0 + 3000, "");
}

static void closing_an_unknown_pull_is_remembered(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	rig_close_pull(1, HEAD_A, 5);
	assert_int_equal(rig_start("opened", HEAD_A, 1, wants, 1).n_new_dispatches, 0);
	assert_int_equal(rig_start("synchronize", HEAD_A, 5, wants, 1).n_new_dispatches, 0);
	assert_int_equal(rig_start("reopened", HEAD_A, 5, wants, 1).n_new_dispatches, 1);
}

static void two_pulls_share_a_head(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct rig_plan other = {
	    .kind = PLAN_START, .number = 2, .head = HEAD_A, .event_ms = T0 + 2000, .wants = wants, .n_wants = 1};
	struct change_view *v;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(rig_apply(&other).n_new_dispatches, 0);
	free(rig_send(T0 + 2000));
	/* One pull request gets a new head, the other keeps the old one. */
	rig_start("synchronize", HEAD_B, 3, wants, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu sent*");
	v = rig_view_of(2, NULL);
	assert_string_equal(v->head_sha, HEAD_A);
	assert_int_equal(v->state, CHANGE_OPEN);
	change_view_free(v);
	rig_close_pull(2, HEAD_A, 4);
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*");
	ASSERT_SENT(T0 + 4000, "github_dispatch Ascend/pytorch[npu] synchronize; "
			       "github_closed Ascend/pytorch[npu] closed");
}

static void closing_one_of_two_pulls_ends_nothing(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct rig_plan other = {
	    .kind = PLAN_START, .number = 2, .head = HEAD_A, .event_ms = T0 + 2000, .wants = wants, .n_wants = 1};
	struct change_view *v;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_apply(&other);
	free(rig_send(T0 + 2000));
	rig_close_pull(1, HEAD_A, 3);
	ASSERT_DISPATCHES(HEAD_A, "npu sent*");
	ASSERT_SENT(T0 + 3000, "");
	v = rig_view_of(1, NULL);
	assert_int_equal(v->state, CHANGE_CLOSED);
	change_view_free(v);
	v = rig_view_of(2, NULL);
	assert_int_equal(v->state, CHANGE_OPEN);
	change_view_free(v);
}

/* PR 1 has moved on to another head, PR 2 still has the first one. */
static void closing_one_pull_still_notifies_for_the_other(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .number = 2, .head = HEAD_A, .event_ms = T0 + 2000, .wants = wants, .n_wants = 1});
	rig_start("synchronize", HEAD_B, 3, wants, 1);
	free(rig_send(T0 + 3000));
	rig_close_pull(1, HEAD_B, 4);
	ASSERT_SENT(T0 + 5000, "github_closed Ascend/pytorch[npu] closed");
	rig_close_pull(2, HEAD_A, 6);
	ASSERT_SENT(T0 + 7000, "github_closed Ascend/pytorch[npu] closed");
}

static void a_draft_ends_runs_of_accelerators_without_drafts(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("gcu", "Enflame/ci")};
	char *drops[] = {(char *)"npu", NULL};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	free(rig_send(T0 + 1000));
	rig_apply(&(struct rig_plan){.kind = PLAN_UPDATE,
	    .head = HEAD_A,
	    .event_ms = T0 + 2000,
	    .action = "converted_to_draft",
	    .sent_action = "closed",
	    .drops = drops});
	ASSERT_DISPATCHES(HEAD_A, "gcu sent*, npu cancelled*");
	ASSERT_SENT(T0 + 2000, "github_closed Ascend/pytorch[npu] closed");
	rig_start("ready_for_review", HEAD_A, 3, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "gcu sent*, npu queued*, npu cancelled");
	free(rig_send(T0 + 3000));
	rig_close_pull(1, HEAD_A, 4);
	ASSERT_SENT(T0 + 4000, "github_closed Ascend/pytorch[npu] closed; "
			       "github_closed Enflame/ci[gcu] closed");
}

/* ---- held ---- */

static struct plan_want held(struct plan_want w)
{
	w.held_reason = (char *)"the author is new";
	return w;
}

static int release(const char *sha, int64_t comment_ms, int *ret_n) { return rig_release(sha, comment_ms, ret_n); }

static void a_held_head_waits_for_a_member(void **state)
{
	struct plan_want wants[] = {
	    held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch")), held((struct plan_want)WEBHOOK_WANT("xpu"))};
	struct change_view *v;
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu held*, xpu held*");
	ASSERT_SENT(T0 + DAY, "");
	v = rig_view_of(1, NULL);
	assert_string_equal(v->accelerators[0].dispatches[0].held_reason, "the author is new");
	assert_int_equal(v->accelerators[0].dispatches[0].due_ms, 0);
	change_view_free(v);
	assert_int_equal(release(NULL, T0 + 5000, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(release(NULL, T0 + 6000, &n), ERR_NOT_FOUND);
	ASSERT_SENT(T0 + 6000, "github_dispatch Ascend/pytorch[npu] opened; "
			       "webhook_dispatch https://ci.example.org/hook[xpu] opened");
	/* A retest of the same head needs no second release, a newer head does. */
	rig_start("edited", HEAD_A, 7, wants, 2);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*, npu superseded, xpu queued*, xpu superseded");
	rig_start("synchronize", HEAD_B, 8, wants, 2);
	ASSERT_DISPATCHES(HEAD_B, "npu held*, xpu held*");
}

static void a_comment_releases_the_head_at_its_time(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("synchronize", HEAD_B, 10, wants, 1);
	assert_int_equal(release(NULL, T0 + 9000, &n), ERR_NOT_FOUND);  /* written before B */
	assert_int_equal(release(NULL, T0 + 10000, &n), ERR_NOT_FOUND); /* in its second */
	assert_int_equal(release(HEAD_A, T0 + 11000, &n), ERR_NOT_FOUND);
	assert_int_equal(release("bbb", T0 + 11000, &n), ERR_NOT_FOUND); /* too short a SHA */
	ASSERT_DISPATCHES(HEAD_B, "npu held*");
	assert_int_equal(release("BBBBBBBBBB", T0 + 10000, &n), 0);
	ASSERT_DISPATCHES(HEAD_B, "npu queued*");
}

/* Finding 7: a commit with seven chosen digits is quickly made, so a short SHA matches only a head that existed when
 * the comment was written. */
static void a_short_sha_does_not_match_a_later_head(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch"))};
	char prefix[41] = HEAD_B;
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("synchronize", HEAD_B, 10, wants, 1);
	for (size_t digits = 7; digits < 40; digits += 11) {
		prefix[digits] = '\0';
		assert_int_equal(release(prefix, T0 + 9000, &n), ERR_NOT_FOUND);
		memset(prefix, 'b', 40);
	}
	ASSERT_DISPATCHES(HEAD_B, "npu held*");
	assert_int_equal(release(HEAD_B, T0 + 9000, &n), 0);
	ASSERT_DISPATCHES(HEAD_B, "npu queued*");
}

/* If two heads have the same short SHA, the later one does not count, but the comment may mean either. */
static void an_ambiguous_short_sha_releases_no_head(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch"))};
	static const char later[] = "aaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbb";
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("synchronize", later, 10, wants, 1);
	assert_int_equal(release("aaaaaaaaaaaa", T0 + 9000, &n), ERR_NOT_FOUND);
	assert_int_equal(release("aaaaaaaaaaaa", T0 + 11000, &n), ERR_NOT_FOUND);
	assert_int_equal(release("aaaaaaaaaaaab", T0 + 11000, &n), 0);
}

static void the_first_head_may_be_released_in_its_second(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch"))};
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(release(NULL, T0 + 999, &n), ERR_NOT_FOUND);
	assert_int_equal(release(NULL, T0 + 1000, &n), 0);
}

static void merged_only_is_never_released(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch"))};
	int n;

	(void)state;
	wants[0].is_held_for_good = true;
	rig_start("opened", HEAD_A, 1, wants, 1);
	assert_int_equal(release(NULL, T0 + 5000, &n), ERR_NOT_FOUND);
	ASSERT_DISPATCHES(HEAD_A, "npu held*");
}

static void a_head_that_becomes_trusted_is_released(void **state)
{
	struct plan_want wants[] = {held((struct plan_want)GITHUB_WANT("npu", "Ascend/pytorch"))};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("edited", HEAD_A, 2, wants, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu held*");
	wants[0].held_reason = NULL;
	rig_start("labeled", HEAD_A, 3, wants, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
}

/* ---- one repository for several ---- */

static void a_shared_repository_gets_one_request(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Vendor/ci"), GITHUB_WANT("gcu", "vendor/CI"),
	    held((struct plan_want)GITHUB_WANT("mlu", "vendor/ci"))};
	struct plan_want later[] = {GITHUB_WANT("xpu", "vendor/ci")};
	char *first, *second;
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	first = rig_dispatch_id(HEAD_A, "npu");
	second = rig_dispatch_id(HEAD_A, "gcu");
	assert_string_equal(first, second);
	free(second);
	second = rig_dispatch_id(HEAD_A, "mlu");
	assert_string_not_equal(first, second);
	free(second);
	ASSERT_SENT(T0 + 1000, "github_dispatch Vendor/ci[gcu,npu] opened");

	/* The later request cancels the earlier one there, so it names all accelerators again. */
	rig_start("labeled", HEAD_A, 2, later, 1);
	ASSERT_DISPATCHES(HEAD_A, "gcu queued*, gcu superseded, mlu held*, npu queued*, "
				  "npu superseded, xpu queued*");
	second = rig_dispatch_id(HEAD_A, "npu");
	assert_string_not_equal(first, second);
	free(second);
	ASSERT_SENT(T0 + 2000, "github_dispatch vendor/ci[gcu,npu,xpu] labeled");
	assert_int_equal(release(NULL, T0 + 3000, &n), 0);
	ASSERT_SENT(T0 + 3000, "github_dispatch vendor/ci[gcu,mlu,npu,xpu] opened");
	free(first);
}

static void an_unsent_shared_request_is_replaced(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "vendor/ci")};
	struct plan_want later[] = {GITHUB_WANT("xpu", "vendor/ci")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_start("labeled", HEAD_A, 2, later, 1);
	ASSERT_SENT(T0 + 2000, "github_dispatch vendor/ci[npu,xpu] labeled");
}

static void dropping_one_of_a_shared_request_keeps_the_rest(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "vendor/ci"), GITHUB_WANT("xpu", "vendor/ci")};
	char *drops[] = {(char *)"npu", NULL};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	rig_apply(&(struct rig_plan){.kind = PLAN_UPDATE,
	    .head = HEAD_A,
	    .event_ms = T0 + 2000,
	    .action = "unlabeled",
	    .sent_action = "closed",
	    .drops = drops});
	ASSERT_SENT(T0 + 2000, "github_dispatch vendor/ci[xpu] opened");
	ASSERT_DISPATCHES(HEAD_A, "npu cancelled*, xpu sent*");
}

static void infra_gets_one_request_for_each_change(void **state)
{
	struct plan_want wants[] = {
	    {.accelerator = (char *)"", .runner = (char *)"infra", .kind = RUNNER_INFRA, .target = (char *)"fdn/infra"},
	    {.accelerator = (char *)"cpu",
		.runner = (char *)"infra",
		.kind = RUNNER_INFRA,
		.target = (char *)"fdn/infra",
		.start_ms = HOUR,
		.finish_ms = 2 * HOUR}};
	struct list_dispatches l = {.limit = 10};
	struct expire_dispatches e = {.now_ms = T0 + DAY};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	ASSERT_SENT(T0 + 1000, "github_dispatch fdn/infra[] opened");
	ASK_OK(store_list_dispatches, &l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.list[0].accelerator, "");
	assert_string_equal(l.list[0].state, "done");
	list_dispatches_release(&l);
	rig_start("synchronize", HEAD_B, 2, wants, 2);
	ASSERT_SENT(T0 + 2000, "github_dispatch fdn/infra[cpu] synchronize");
	DO_OK(store_expire_dispatches, &e);
	assert_int_equal(e.n_expired, 1);
	ASSERT_CELLS(HEAD_B, "cpu dispatch/infra MISS");
}

/* A comment without content would be useless. */
static void a_held_infra_repository_alone_causes_no_comment(void **state)
{
	struct plan_want wants[] = {{.accelerator = (char *)"",
	    .runner = (char *)"infra",
	    .kind = RUNNER_INFRA,
	    .target = (char *)"fdn/infra",
	    .held_reason = (char *)"new"}};
	struct claim_outbox c;
	int n;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(COMMENTS, T0 + DAY);
	assert_int_equal(c.n, 0);
	claim_outbox_release(&c);
	assert_int_equal(release(NULL, T0 + 5000, &n), 0);
	ASSERT_SENT(T0 + 6000, "github_dispatch fdn/infra[] opened");
}

/* ---- without a webhook ---- */

static void a_plan_without_a_webhook_keeps_its_body(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)HEAD_A,
	    .event_type = "push",
	    .wants = wants,
	    .n_wants = 1};
	struct apply_plan op = {.guid = "11111111-2222-4333-8444-555555555555",
	    .body = "{\"after\":1}",
	    .body_bytes = 11,
	    .plan = &p,
	    .now_ms = T0};
	struct get_delivery g = {.guid = op.guid}, none = {.guid = "no-effect"};
	struct claim_outbox c;

	(void)state;
	DO_OK(store_apply_plan, &op);
	ASK_OK(store_get_delivery, &g);
	assert_string_equal(g.delivery.state, "planned");
	assert_string_equal(g.delivery.body, "{\"after\":1}");
	delivery_release(&g.delivery);
	c = rig_claim(REQUESTS, T0);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].delivery_guid, op.guid);
	assert_string_equal(c.rows[0].head_sha, HEAD_A);
	assert_int_equal(c.rows[0].finish_by_ms, T0 + 6 * HOUR);
	claim_outbox_release(&c);
	op.guid = "no-effect";
	DO_OK(store_apply_plan, &op);
	assert_int_equal(op.n_new_dispatches, 0);
	assert_int_equal(ASK(store_get_delivery, &none), ERR_NOT_FOUND);
}

static void a_noted_head_is_not_tested(void **state)
{
	static char *no_labels[] = {NULL};
	struct pull_info pull = {
	    .number = 7, .head_sha = (char *)HEAD_A, .labels = no_labels, .is_open = true, .updated_ms = T0};
	struct note_head note = {.repository = UPSTREAM, .pull = &pull, .now_ms = T0};
	struct note_head push = {.repository = UPSTREAM, .ref = "refs/heads/main", .head_sha = HEAD_B, .now_ms = T0};
	struct list_pulls l = {.repository = "PYTORCH/PyTorch", .only_open = true};
	struct has_push h = {.repository = UPSTREAM, .head_sha = HEAD_B};

	(void)state;
	DO_OK(store_note_head, &note);
	DO_OK(store_note_head, &push);
	ASK_OK(store_list_pulls, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.list[0].number, 7);
	assert_string_equal(l.list[0].head_sha, HEAD_A);
	list_pulls_release(&l);
	ASK_OK(store_has_push, &h);
	assert_true(h.is_known);
	ASSERT_DISPATCHES(HEAD_A, "");
	ASSERT_SENT(T0 + DAY, "");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(each_runner_starts_once),
	    TEST(a_planned_delivery_is_not_planned_again),
	    TEST(a_newer_head_supersedes),
	    TEST(an_unsent_request_is_dropped),
	    TEST(an_expired_round_is_not_sent_together_with_the_next),
	    TEST(an_expired_draft_is_not_sent),
	    TEST(a_head_pushed_back_starts_again),
	    TEST(stale_events_change_nothing),
	    TEST(the_later_of_two_pushes_in_one_second_stays),
	    TEST(a_stale_event_of_the_current_head_still_starts),
	    TEST(reopening_begins_one_round),
	    TEST(a_reopen_may_arrive_before_the_close),
	    TEST(closed_is_sent_once_to_each_receiver_of_a_request),
	    TEST(a_request_that_is_being_sent_counts_as_received),
	    TEST(a_refused_request_is_not_closed),
	    TEST(closing_an_unknown_pull_is_remembered),
	    TEST(two_pulls_share_a_head),
	    TEST(closing_one_of_two_pulls_ends_nothing),
	    TEST(closing_one_pull_still_notifies_for_the_other),
	    TEST(a_draft_ends_runs_of_accelerators_without_drafts),
	    TEST(a_held_head_waits_for_a_member),
	    TEST(a_comment_releases_the_head_at_its_time),
	    TEST(a_short_sha_does_not_match_a_later_head),
	    TEST(an_ambiguous_short_sha_releases_no_head),
	    TEST(the_first_head_may_be_released_in_its_second),
	    TEST(merged_only_is_never_released),
	    TEST(a_head_that_becomes_trusted_is_released),
	    TEST(a_shared_repository_gets_one_request),
	    TEST(an_unsent_shared_request_is_replaced),
	    TEST(dropping_one_of_a_shared_request_keeps_the_rest),
	    TEST(infra_gets_one_request_for_each_change),
	    TEST(a_held_infra_repository_alone_causes_no_comment),
	    TEST(a_plan_without_a_webhook_keeps_its_body),
	    TEST(a_noted_head_is_not_tested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
