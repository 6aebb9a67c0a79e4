/* Turns: how many answers are built at once, one answer for all requests of the same page, also for later ones until something
 * changes, queues of clients that take turns, and refused and disconnected clients. */
#include <setjmp.h>

#include <cmocka.h>

#include "http/conn.h"
#include "http/request.h"
#include "web/gate.h"

enum { REQUESTS_MAX = 1000 };

/* ---- requests without a server ---- */

struct asked {
	struct http_request request;
	struct http_head head;
	char target[32];
	bool is_begun, is_answered, is_refused;
};

static struct http_conn here;
static struct asked all[REQUESTS_MAX];
static int n_asked, n_begun, n_refused;
static struct buf begun; /* "/a /b …" in the order in which they were started */
static bool ends_at_once;
static int n_unreleased; /* answers */

static struct asked *of(struct http_request *r) { return CONTAINER_OF(r, struct asked, request); }

static void reply(struct http_request *r, const struct web_answer *a)
{
	assert_non_null(a->release);
	assert_false(of(r)->is_answered || of(r)->is_refused);
	of(r)->is_answered = true;
}

static void release(struct web_answer *a)
{
	n_unreleased--;
	free(a);
}

static struct web_answer *answer_of_bytes(size_t n_bytes, bool may_be_kept)
{
	struct web_answer *a = xcalloc(1, sizeof(*a));

	n_unreleased++;
	*a = (struct web_answer){.send = reply, .release = release, .n_bytes = n_bytes, .may_be_kept = may_be_kept};
	return a;
}

static void refuse(struct http_request *r)
{
	assert_false(of(r)->is_answered || of(r)->is_refused || of(r)->is_begun);
	of(r)->is_refused = true;
	n_refused++;
}

static void make(struct http_request *r, void *owner)
{
	(void)owner;
	assert_false(of(r)->is_begun || of(r)->is_refused);
	of(r)->is_begun = true;
	n_begun++;
	buf_appendf(&begun, "%s ", http_target(r));
	if (ends_at_once)
		web_gate_answer(r, answer_of_bytes(100, false));
}

/* The last number of the client's address. */
static struct asked *ask(struct web_gate *g, uint8_t client, const char *target)
{
	struct asked *a = &all[n_asked++];

	assert_true(n_asked <= REQUESTS_MAX);
	*a = (struct asked){.request = {.conn = &here, .head = &a->head}};
	snprintf(a->target, sizeof(a->target), "%s", target);
	a->head.text = a->target;
	a->request.address[10] = a->request.address[11] = 0xff;
	a->request.address[15] = client;
	web_gate_submit(g, &a->request, str_has_prefix(target, "/long"), make, NULL);
	return a;
}

static struct asked *ask_nth(struct web_gate *g, uint8_t client, const char *prefix, int n)
{
	char target[32];

	snprintf(target, sizeof(target), "%s%d", prefix, n);
	return ask(g, client, target);
}

static void answer(struct asked *a)
{
	assert_true(a->is_begun);
	web_gate_answer(&a->request, answer_of_bytes(100, false));
}

/* Acts like the server when the client has left. */
static void leave(struct asked *a)
{
	a->request.conn = NULL;
	if (a->request.on_gone)
		a->request.on_gone(&a->request);
}

static struct web_gate *open_gate(void)
{
	n_asked = n_begun = n_refused = 0;
	ends_at_once = false;
	buf_clear(&begun);
	return web_gate_new(refuse);
}

/* Answers all started requests until none is left. */
static void answer_all(void)
{
	for (bool goes_on = true; goes_on;) {
		goes_on = false;
		for (int i = 0; i < n_asked; i++)
			if (all[i].is_begun && !all[i].is_answered) {
				answer(&all[i]);
				goes_on = true;
			}
	}
}

static void close_gate(struct web_gate *g)
{
	answer_all();
	web_gate_close(g);
	web_gate_free(g);
	buf_release(&begun);
	assert_int_equal(n_unreleased, 0);
}

static int64_t version;

static int64_t version_now(void *owner)
{
	assert_ptr_equal(owner, &version);
	return version;
}

static void an_answer_in_progress_is_shared_until_something_changes(void **state)
{
	struct web_gate *g = open_gate();
	struct asked *first, *same, *leaving, *later, *other;

	(void)state;
	web_gate_share_begun(g, version_now, &version);
	first = ask(g, 1, "/a");
	same = ask(g, 2, "/a");
	leaving = ask(g, 3, "/a");
	other = ask(g, 2, "/b");
	assert_int_equal(n_begun, 2);
	leave(leaving);
	version++;
	later = ask(g, 2, "/a");
	assert_int_equal(n_begun, 3);
	answer(first);
	assert_true(first->is_answered && same->is_answered);
	assert_false(leaving->is_answered || leaving->is_refused || later->is_answered || other->is_answered);
	same = ask(g, 4, "/a");
	web_gate_close(g);
	web_gate_free(g);
	answer(later);
	assert_true(later->is_answered && same->is_answered);
	answer(other);
}

static void answer_with(struct asked *a, size_t n_bytes, bool may_be_kept)
{
	assert_true(a->is_begun);
	web_gate_answer(&a->request, answer_of_bytes(n_bytes, may_be_kept));
}

static void a_finished_answer_is_kept_until_something_changes(void **state)
{
	struct web_gate *g = open_gate();
	struct asked *first, *later, *late;

	(void)state;
	web_gate_share_begun(g, version_now, &version);
	first = ask(g, 1, "/a");
	answer_with(first, 100, true);
	later = ask(g, 2, "/a");
	assert_true(later->is_answered && !later->is_begun);
	answer_with(ask(g, 2, "/a?x=1"), 100, true);
	assert_int_equal(n_begun, 2);
	assert_int_equal(n_unreleased, 2);
	version++;
	later = ask(g, 2, "/a");
	assert_true(later->is_begun && !later->is_answered);
	assert_int_equal(n_unreleased, 0);
	/* It began before the change, so the clients that wait get it, and nobody else. */
	version++;
	answer_with(later, 100, true);
	late = ask(g, 2, "/a");
	assert_true(later->is_answered && late->is_begun);
	answer_with(late, 100, false);
	assert_true(ask(g, 2, "/a")->is_begun);
	answer_all();
	answer_with(ask(g, 1, "/b"), 100, true);
	assert_int_equal(n_unreleased, 1);
	close_gate(g);
	assert_int_equal(n_refused, 0);
}

static void without_a_version_no_answer_is_kept(void **state)
{
	struct web_gate *g = open_gate();

	(void)state;
	answer_with(ask(g, 1, "/a"), 100, true);
	assert_int_equal(n_unreleased, 0);
	assert_true(ask(g, 1, "/a")->is_begun);
	close_gate(g);
}

static void kept_answers_have_a_bounded_memory(void **state)
{
	enum { PART = 3 << 20, MOST = 16 << 20 };
	struct web_gate *g = open_gate();

	(void)state;
	web_gate_share_begun(g, version_now, &version);
	answer_with(ask(g, 1, "/huge"), PART * 2, true);
	assert_int_equal(n_unreleased, 0);
	for (int i = 0; i < 20; i++)
		answer_with(ask_nth(g, 1, "/x", i), PART, true);
	assert_int_equal(n_unreleased, MOST / PART);
	/* The newest ones stay. */
	assert_true(ask(g, 1, "/x19")->is_answered);
	assert_true(ask(g, 1, "/x15")->is_answered);
	assert_false(ask(g, 1, "/x14")->is_answered);
	close_gate(g);
}

static void one_long_answer_leaves_places_for_the_others(void **state)
{
	struct web_gate *g = open_gate();
	struct asked *first = ask(g, 1, "/long1"), *second = ask(g, 2, "/long2"), *behind = ask(g, 2, "/b");
	struct asked *other = ask(g, 3, "/a"), *more = ask(g, 4, "/c");

	(void)state;
	assert_true(first->is_begun && other->is_begun && more->is_begun);
	assert_false(second->is_begun || behind->is_begun);
	answer(other);
	assert_false(second->is_begun || behind->is_begun);
	answer(first);
	assert_true(second->is_begun && behind->is_begun);
	close_gate(g);
	assert_int_equal(n_refused, 0);
}

/* All places are taken, by a client that requests nothing else. */
static struct web_gate *open_busy_gate(void)
{
	struct web_gate *g = open_gate();

	for (int i = 0; i < WEB_GATE_MAKING_MAX; i++)
		ask_nth(g, 99, "/busy", i);
	assert_int_equal(n_begun, WEB_GATE_MAKING_MAX);
	buf_clear(&begun);
	n_begun = 0;
	return g;
}

/* ---- the tests ---- */

static void a_few_run_at_once_and_each_client_keeps_its_order(void **state)
{
	struct web_gate *g = open_busy_gate();

	(void)state;
	ask(g, 1, "/a");
	ask(g, 1, "/b");
	ask(g, 1, "/c");
	assert_int_equal(n_begun, 0);
	answer(&all[0]);
	assert_string_equal(buf_str(&begun), "/a ");
	answer_all();
	assert_string_equal(buf_str(&begun), "/a /b /c ");
	close_gate(g);
	assert_int_equal(n_refused, 0);
}

static void the_same_answer_is_built_once_for_all_waiting_clients(void **state)
{
	struct web_gate *g = open_busy_gate();
	struct asked *first = ask(g, 1, "/a?x=1"), *other, *late;
	int n_waiting;

	(void)state;
	for (int i = 0; i < 500; i++)
		ask(g, (uint8_t)(1 + i % 50), "/a?x=1");
	other = ask(g, 1, "/a?x=2");
	n_waiting = n_asked;
	answer(&all[0]);
	answer(&all[1]);
	assert_int_equal(n_begun, 2);
	assert_true(first->is_begun && other->is_begun);
	/* The answer may have read the database before the request came. */
	late = ask(g, 2, "/a?x=1");
	answer(first);
	for (int i = WEB_GATE_MAKING_MAX; i < n_waiting; i++)
		assert_int_equal(all[i].is_answered, &all[i] != other);
	assert_false(late->is_answered);
	assert_true(late->is_begun);
	assert_int_equal(n_begun, 3);
	close_gate(g);
	assert_int_equal(n_refused, 0);
}

/* Finding 9: one client with many pages does not delay the others. */
static void the_lines_of_clients_take_turns(void **state)
{
	struct web_gate *g = open_busy_gate();

	(void)state;
	for (int i = 0; i < 100; i++)
		ask_nth(g, 1, "/x", i);
	ask(g, 2, "/a");
	ask(g, 2, "/b");
	ask(g, 3, "/c");
	answer_all();
	assert_memory_equal(buf_str(&begun), "/x0 /a /c /x1 /b /x2 /x3 ", 25);
	close_gate(g);
	assert_int_equal(n_refused, 0);
}

static void later_requests_for_a_page_do_not_delay_it(void **state)
{
	struct web_gate *g = open_busy_gate();

	(void)state;
	for (int i = 0; i < 50; i++)
		ask_nth(g, 1, "/x", i);
	ask(g, 2, "/x49");
	answer_all();
	assert_memory_equal(buf_str(&begun), "/x0 /x49 /x1 ", 13);
	assert_int_equal(n_begun, 50);
	close_gate(g);
}

static void the_longest_line_gives_way_when_too_many_wait(void **state)
{
	struct web_gate *g = open_busy_gate();
	struct asked *visitor;

	(void)state;
	for (int i = 0; i < WEB_GATE_WAITING_MAX; i++)
		ask_nth(g, 1, "/x", i);
	assert_int_equal(n_refused, 0);
	assert_true(ask(g, 1, "/more")->is_refused);
	visitor = ask(g, 2, "/a");
	assert_false(visitor->is_refused);
	assert_int_equal(n_refused, 2);
	assert_true(all[WEB_GATE_MAKING_MAX + WEB_GATE_WAITING_MAX - 1].is_refused);
	/* A page that is already queued accepts more clients. */
	assert_false(ask(g, 1, "/x0")->is_refused);
	answer_all();
	assert_true(visitor->is_answered);
	close_gate(g);
	assert_int_equal(n_refused, 2);
}

/* A newcomer whose own line would be the longest must not take another client's place: otherwise clients with many
 * addresses would take the place of the next client. */
static void the_newcomer_is_refused_when_all_lines_are_equally_long(void **state)
{
	struct web_gate *g = open_busy_gate();

	(void)state;
	for (int i = 0; i < WEB_GATE_WAITING_MAX / 2; i++) {
		ask_nth(g, (uint8_t)(100 + i), "/x", i);
		ask_nth(g, (uint8_t)(100 + i), "/y", i);
	}
	/* Its line would be shorter than theirs: it gets a place. */
	assert_false(ask(g, 1, "/a")->is_refused);
	assert_int_equal(n_refused, 1);
	/* With this one its line would be as long as theirs. */
	assert_true(ask(g, 1, "/b")->is_refused);
	assert_int_equal(n_refused, 2);
	close_gate(g);
	assert_int_equal(n_refused, 2);
}

static void many_clients_do_not_delay_the_next_turn(void **state)
{
	struct web_gate *g = open_busy_gate();
	struct asked *first = ask(g, 1, "/first");

	(void)state;
	for (int i = 1; i < WEB_GATE_WAITING_MAX; i++)
		ask_nth(g, (uint8_t)(1 + i), "/x", i);
	assert_true(ask(g, 250, "/late")->is_refused);
	assert_int_equal(n_refused, 1);
	answer(&all[0]);
	assert_true(first->is_begun);
	close_gate(g);
}

static void an_answer_that_ends_at_once_lets_the_others_run(void **state)
{
	struct web_gate *g = open_busy_gate();

	(void)state;
	ends_at_once = true;
	for (int i = 0; i < WEB_GATE_WAITING_MAX; i++)
		ask_nth(g, 1, "/x", i);
	assert_int_equal(n_begun, 0);
	answer(&all[0]);
	assert_int_equal(n_begun, WEB_GATE_WAITING_MAX);
	close_gate(g);
}

static void a_client_that_left_while_waiting_gets_no_turn(void **state)
{
	struct web_gate *g = open_busy_gate();
	struct asked *gone = ask(g, 1, "/gone"), *left = ask(g, 1, "/a");
	struct asked *stays = ask(g, 2, "/a"), *ending = ask(g, 1, "/ending");
	struct http_conn ended = {.is_eof = true};

	(void)state;
	leave(gone);
	leave(left);
	ending->request.conn = &ended;
	answer_all();
	assert_string_equal(buf_str(&begun), "/a ");
	assert_true(stays->is_begun && stays->is_answered);
	assert_false(gone->is_begun || left->is_answered);
	assert_true(ending->is_refused);
	close_gate(g);
}

static void a_client_that_leaves_while_its_answer_is_built_affects_no_other(void **state)
{
	struct web_gate *g = open_busy_gate();
	struct asked *first = ask(g, 1, "/a"), *second = ask(g, 2, "/a"), *third = ask(g, 3, "/a");

	(void)state;
	answer(&all[0]);
	assert_true(first->is_begun);
	leave(first);
	leave(second);
	answer(first);
	assert_true(third->is_answered);
	assert_false(second->is_answered);
	/* The answer that is being built continues, and its result is dropped. */
	assert_true(first->is_answered);
	close_gate(g);
}

static void a_client_that_shut_down_its_side_is_answered_where_there_is_no_waiting(void **state)
{
	struct web_gate *g = open_gate();
	struct asked *a;

	(void)state;
	here.is_eof = true;
	a = ask(g, 1, "/a");
	here.is_eof = false;
	assert_true(a->is_begun);
	close_gate(g);
}

static void a_closed_gate_refuses_and_outlives_its_owner(void **state)
{
	struct web_gate *g = open_busy_gate();

	(void)state;
	ask(g, 1, "/a");
	ask(g, 2, "/a");
	ask(g, 2, "/b");
	web_gate_close(g);
	assert_int_equal(n_refused, 3);
	assert_true(ask(g, 1, "/late")->is_refused);
	web_gate_free(g);
	answer_all();
	buf_release(&begun);
}

static void a_request_that_waited_for_no_turn_is_answered_alone(void **state)
{
	struct asked a = {.request = {.conn = &here}};

	(void)state;
	web_gate_answer(&a.request, answer_of_bytes(100, true));
	assert_true(a.is_answered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_answer_in_progress_is_shared_until_something_changes),
	    cmocka_unit_test(a_finished_answer_is_kept_until_something_changes),
	    cmocka_unit_test(without_a_version_no_answer_is_kept),
	    cmocka_unit_test(one_long_answer_leaves_places_for_the_others),
	    cmocka_unit_test(kept_answers_have_a_bounded_memory),
	    cmocka_unit_test(a_few_run_at_once_and_each_client_keeps_its_order),
	    cmocka_unit_test(the_same_answer_is_built_once_for_all_waiting_clients),
	    cmocka_unit_test(the_lines_of_clients_take_turns),
	    cmocka_unit_test(later_requests_for_a_page_do_not_delay_it),
	    cmocka_unit_test(the_longest_line_gives_way_when_too_many_wait),
	    cmocka_unit_test(the_newcomer_is_refused_when_all_lines_are_equally_long),
	    cmocka_unit_test(many_clients_do_not_delay_the_next_turn),
	    cmocka_unit_test(an_answer_that_ends_at_once_lets_the_others_run),
	    cmocka_unit_test(a_client_that_left_while_waiting_gets_no_turn),
	    cmocka_unit_test(a_client_that_leaves_while_its_answer_is_built_affects_no_other),
	    cmocka_unit_test(a_client_that_shut_down_its_side_is_answered_where_there_is_no_waiting),
	    cmocka_unit_test(a_closed_gate_refuses_and_outlives_its_owner),
	    cmocka_unit_test(a_request_that_waited_for_no_turn_is_answered_alone),
	};

	begun = (struct buf)BUF_INIT(1 << 16);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
