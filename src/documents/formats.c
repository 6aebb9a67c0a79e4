#include "documents/formats.h"

bool text_is_blank(const char *s) { return !s || s[strspn(s, " \t\r\n")] == '\0'; }

char *line_or(const char *s, size_t max_bytes, const char *fallback)
{
	char *line = report_line(s ? s : "", max_bytes);

	if (!text_is_blank(line))
		return line;
	free(line);
	return xstrdup(fallback);
}

void test_result_mark_flaky(struct test_result *t)
{
	char *remark =
	    t->message ? xasprintf("passed when it was run again; before: %.*s", REPORT_MESSAGE_MAX_BYTES, t->message)
		       : xstrdup("passed when it was run again");

	free(t->message);
	t->message = report_line(remark, REPORT_MESSAGE_MAX_BYTES);
	free(remark);
}

/* ---- the cases of a document while it is read ---- */

/* The list drops cases only when it holds twice as many as it keeps, so that each case costs a constant share
 * of the sorting. */
enum { HELD_MAX = 2 * REPORT_TESTS_MAX };

struct listed_case {
	struct test_result result; /* its name is NULL after another case replaced it */
	uint32_t group;
};

static int compare_same_name(const struct listed_case *x, const struct listed_case *y)
{
	const struct test_result *a = &x->result, *b = &y->result;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	int order = strcmp(a->name, b->name);
	if (!order)
		order = strcmp(a->suite, b->suite);
	return order ? order : strcmp(a->dtype ? a->dtype : "", b->dtype ? b->dtype : "");
}

static int compare_listed(const void *a, const void *b)
{
	const struct listed_case *x = *(struct listed_case *const *)a;
	const struct listed_case *y = *(struct listed_case *const *)b;
	int order = compare_same_name(x, y);

	/* Cases of one name stay in the order of arrival, which is their order in memory. */
	return order ? order : (x > y) - (x < y);
}

enum { N_RANKS = 4 };

/* 0 is kept first. */
static int rank_of_case(const struct test_result *t)
{
	static const int ranks[N_TEST_STATUSES] = {
	    [TEST_FAIL] = 0, [TEST_ERROR] = 1, [TEST_MISS] = 2, [TEST_PASS] = 3, [TEST_DONE] = 3, [TEST_SKIP] = 3};

	return ranks[t->status];
}

/* Makes the cases of one name one case and keeps the worst: a report does not say whether two cases of one
 * name are two tries of one test, and this must never turn a red test green. Then drops those of the last ranks
 * that are too many. */
static void drop_surplus_cases(struct case_list *l)
{
	struct listed_case **sorted = xmalloc((l->n + 1) * sizeof(*sorted)), *first = NULL;
	size_t room[N_RANKS] = {0}, left = REPORT_TESTS_MAX, n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->cases[i].group != CASE_ALONE)
			sorted[n++] = &l->cases[i];
	qsort(sorted, n, sizeof(*sorted), compare_listed);
	for (size_t i = 0; i < n; i++) {
		struct test_result *later = &sorted[i]->result, earlier;

		if (!first || compare_same_name(first, sorted[i])) {
			first = sorted[i];
			continue;
		}
		earlier = first->result;
		if (later->status <= earlier.status) {
			first->result = *later;
			*later = earlier;
		}
		test_result_release(later);
	}
	free(sorted);
	n = 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->cases[i].result.name)
			room[rank_of_case(&l->cases[i].result)]++;
	for (int r = 0; r < N_RANKS; r++) {
		if (room[r] > left) {
			l->n_cut += room[r] - left;
			room[r] = left;
		}
		left -= room[r];
	}
	for (size_t i = 0; i < l->n; i++) {
		struct listed_case *c = &l->cases[i];
		size_t *r = &room[rank_of_case(&c->result)];

		if (!c->result.name)
			continue;
		if (*r > 0) {
			(*r)--;
			l->cases[n++] = *c;
		} else {
			test_result_release(&c->result);
		}
	}
	l->n = n;
}

void case_list_add(struct case_list *l, struct test_result *t, uint32_t group)
{
	if (l->n == HELD_MAX)
		drop_surplus_cases(l);
	*ARRAY_PUSH(l->cases, l->n) = (struct listed_case){.result = *t, .group = group};
	*t = (struct test_result){0};
}

void case_list_finish(struct case_list *l, struct test_result **ret_tests, size_t *ret_n, size_t *ret_n_cut)
{
	drop_surplus_cases(l);
	*ret_tests = xcalloc(l->n ? l->n : 1, sizeof(**ret_tests));
	for (size_t i = 0; i < l->n; i++)
		(*ret_tests)[i] = l->cases[i].result;
	*ret_n = l->n;
	*ret_n_cut = l->n_cut;
	l->n = 0;
	case_list_release(l);
}

void case_list_release(struct case_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		test_result_release(&l->cases[i].result);
	free(l->cases);
	*l = (struct case_list){0};
}

/* ---- for the writers ---- */

const char *report_out_message(const struct report_out *o, const struct test_result *t)
{
	return o->detail < REPORT_BARE && t->message && *t->message ? t->message : NULL;
}

const char *report_out_trace(const struct report_out *o, const struct test_result *t)
{
	return o->detail < REPORT_WITHOUT_TRACES && t->trace && *t->trace ? t->trace : NULL;
}

void report_set_text(json_t *obj, const char *key, const char *text)
{
	if (text && *text)
		json_set_foreign_text(obj, key, text);
}

void report_set_number(json_t *obj, const struct test_result *t)
{
	if (!t->has_number)
		return;
	json_t *number = json_pack("{s:f}", "value", t->number);
	report_set_text(number, "unit", t->unit);
	json_object_set_new(obj, "number", number);
}

int report_number_text(double number, char *text)
{
	char own[32];
	int digits = 15;

	text = text ? text : own;
	snprintf(text, sizeof(own), "%.*g", digits, number);
	if (strtod(text, NULL) != number) {
		digits = 17;
		snprintf(text, sizeof(own), "%.*g", digits, number);
	}
	return digits;
}
