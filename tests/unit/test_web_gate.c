/* Turns: how many at once, in which order, and what becomes of those that nobody waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "http/conn.h"
#include "http/request.h"
#include "web/gate.h"

enum { AT_ONCE = 3, TURNS = 8 };

struct asked {
	struct web_turn turn;
	bool is_begun, is_refused, ends_at_once;
};

static int n_begun, n_refused;

static void begin(struct web_turn *t)
{
	struct asked *a = CONTAINER_OF(t, struct asked, turn);

	assert_false(a->is_begun || a->is_refused);
	a->is_begun = true;
	n_begun++;
	if (a->ends_at_once)
		web_turn_over(t);
}

static void refuse(struct web_turn *t)
{
	struct asked *a = CONTAINER_OF(t, struct asked, turn);

	assert_false(a->is_begun || a->is_refused);
	a->is_refused = true;
	n_refused++;
}

static struct http_conn here;
static struct http_request waits = {.conn = &here}, is_gone = {.conn = NULL};

static void take(struct web_gate *g, struct asked *a, struct http_request *r, bool ends_at_once)
{
	*a = (struct asked){
	    .turn = {.begin = begin, .refuse = refuse, .request = r}, .ends_at_once = ends_at_once};
	web_turn_take(g, &a->turn);
}

static struct web_gate *open_gate(void)
{
	n_begun = n_refused = 0;
	return web_gate_new();
}

static void test_a_few_at_once_the_others_in_their_order(void **state)
{
	struct web_gate *g = open_gate();
	struct asked all[TURNS];

	(void)state;
	for (int i = 0; i < TURNS; i++)
		take(g, &all[i], &waits, false);
	assert_int_equal(n_begun, AT_ONCE);
	for (int i = 0; i < TURNS; i++) {
		assert_true(all[i].is_begun);
		web_turn_over(&all[i].turn);
		assert_int_equal(n_begun, i + 1 + AT_ONCE < TURNS ? i + 1 + AT_ONCE : TURNS);
	}
	web_gate_close(g);
	web_gate_free(g);
	assert_int_equal(n_refused, 0);
}

static void test_what_is_over_at_once_lets_all_the_others_go(void **state)
{
	static struct asked all[100000]; /* deep enough to fall over, were it a recursion */
	struct web_gate *g = open_gate();
	struct asked first[AT_ONCE];

	(void)state;
	for (int i = 0; i < AT_ONCE; i++)
		take(g, &first[i], &waits, false);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		take(g, &all[i], &waits, true);
	assert_int_equal(n_begun, AT_ONCE);
	web_turn_over(&first[0].turn);
	assert_int_equal(n_begun, AT_ONCE + ARRAY_LEN(all));
	for (int i = 1; i < AT_ONCE; i++)
		web_turn_over(&first[i].turn);
	web_gate_close(g);
	web_gate_free(g);
}

static void test_who_went_away_while_he_waited_costs_nothing(void **state)
{
	struct web_gate *g = open_gate();
	struct asked all[TURNS];

	(void)state;
	/* Who has only shut down his side is answered where there is no waiting. */
	take(g, &all[0], &is_gone, false);
	assert_true(all[0].is_begun);
	for (int i = 1; i < TURNS; i++)
		take(g, &all[i], i < AT_ONCE || i == TURNS - 1 ? &waits : &is_gone, false);
	web_turn_over(&all[0].turn);
	assert_int_equal(n_begun, AT_ONCE + 1);
	assert_int_equal(n_refused, TURNS - AT_ONCE - 1);
	assert_true(all[TURNS - 1].is_begun);
	for (int i = 0; i < TURNS; i++)
		if (all[i].is_begun && i > 0)
			web_turn_over(&all[i].turn);
	web_gate_close(g);
	web_gate_free(g);
}

static void test_a_closed_one_refuses_and_outlives_its_owner(void **state)
{
	struct web_gate *g = open_gate();
	struct asked all[TURNS], late;

	(void)state;
	for (int i = 0; i < TURNS; i++)
		take(g, &all[i], &waits, false);
	web_gate_close(g);
	assert_int_equal(n_refused, TURNS - AT_ONCE);
	take(g, &late, &waits, false);
	assert_true(late.is_refused);
	web_gate_free(g);
	for (int i = 0; i < AT_ONCE; i++)
		web_turn_over(&all[i].turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_few_at_once_the_others_in_their_order),
	    cmocka_unit_test(test_what_is_over_at_once_lets_all_the_others_go),
	    cmocka_unit_test(test_who_went_away_while_he_waited_costs_nothing),
	    cmocka_unit_test(test_a_closed_one_refuses_and_outlives_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
