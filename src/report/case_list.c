#include "report/case_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Sifting at twice what is kept in the end makes each case's share of it constant. */
enum { HELD_MAX = 2 * REPORT_TESTS_MAX };

struct listed_case {
	struct test_result result; /* name is NULL once another case stands for it */
	uint32_t group;
};

/* ---- of one name ---- */

static int compare_dtypes(const struct test_result *a, const struct test_result *b)
{
	return strcmp(a->dtype ? a->dtype : "", b->dtype ? b->dtype : "");
}

static int compare_names(const void *a, const void *b)
{
	const struct listed_case *x = *(struct listed_case *const *)a;
	const struct listed_case *y = *(struct listed_case *const *)b;
	int order;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	order = strcmp(x->result.name, y->result.name);
	if (!order)
		order = strcmp(x->result.suite, y->result.suite);
	if (!order)
		order = compare_dtypes(&x->result, &y->result);
	/* of one name: as they came, which is how they lie in memory */
	return order ? order : (x > y) - (x < y);
}

/* Keeps the worst in *earlier: a report does not say that two cases of one name are two tries of
 * one test, and taking two tests for one must never turn a red one green. */
static void fold(struct test_result *earlier, struct test_result *later)
{
	struct test_result out = *earlier;

	if (later->status <= earlier->status) {
		*earlier = *later;
		*later = out;
	}
	test_result_release(later);
}

static void fold_names(struct case_list *l)
{
	struct listed_case **sorted = xmalloc((l->n + 1) * sizeof(*sorted)), *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->cases[i].group != CASE_ALONE)
			sorted[n++] = &l->cases[i];
	qsort(sorted, n, sizeof(*sorted), compare_names);
	for (size_t i = 0; i < n; i++) {
		if (first && first->group == sorted[i]->group &&
		    !strcmp(first->result.name, sorted[i]->result.name) &&
		    !strcmp(first->result.suite, sorted[i]->result.suite) &&
		    !compare_dtypes(&first->result, &sorted[i]->result))
			fold(&first->result, &sorted[i]->result);
		else
			first = sorted[i];
	}
	free(sorted);
}

/* ---- which ones are kept ---- */

enum { RANK_GREEN = 3, N_RANKS };

static int rank_of(const struct test_result *t)
{
	switch (t->status) {
	case TEST_FAIL:
		return 0;
	case TEST_ERROR:
		return 1;
	case TEST_MISS:
		return 2;
	case TEST_PASS:
	case TEST_DONE:
	case TEST_SKIP:
	case N_TEST_STATUSES:
		break;
	}
	return RANK_GREEN;
}

static void sift(struct case_list *l)
{
	size_t room[N_RANKS] = {0}, left = REPORT_TESTS_MAX, n = 0;

	fold_names(l);
	for (size_t i = 0; i < l->n; i++)
		if (l->cases[i].result.name)
			room[rank_of(&l->cases[i].result)]++;
	for (int r = 0; r < N_RANKS; r++) {
		if (room[r] > left) {
			l->n_cut += room[r] - left;
			room[r] = left;
		}
		left -= room[r];
	}
	for (size_t i = 0; i < l->n; i++) {
		struct listed_case *c = &l->cases[i];
		size_t *r = &room[rank_of(&c->result)];

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
		sift(l);
	if (l->n == 0 || (l->n & (l->n - 1)) == 0)
		l->cases = xrealloc(l->cases, (l->n ? 2 * l->n : 1) * sizeof(*l->cases));
	l->cases[l->n++] = (struct listed_case){.result = *t, .group = group};
	*t = (struct test_result){0};
}

void case_list_finish(
    struct case_list *l, struct test_result **ret_tests, size_t *ret_n, size_t *ret_n_cut)
{
	sift(l);
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
