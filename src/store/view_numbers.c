#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/days.h"
#include "store/number_days.h"

/* Lines that have no point in the time: a page looks past so many. */
enum { LINES_LOOKED_AT_MAX = 1000 };

struct line {
	int64_t test_id;
	char unit[REPORT_UNIT_MAX_BYTES + 1];
};

/* One step down the index for each line, however many points it has. */
static bool next_line(
    struct db *d, const char *accelerator, const struct line *after, struct line *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT test_id, unit FROM number_day WHERE accelerator = ?1"
	    " AND (test_id, unit) > (?2, ?3) ORDER BY test_id, unit LIMIT 1",
	    V_TEXT(accelerator), V_INT(after->test_id), V_TEXT(after->unit));
	bool is_found = rows_next(r);

	if (is_found) {
		ret->test_id = rows_int(r, 0);
		snprintf(ret->unit, sizeof(ret->unit), "%s", rows_text(r, 1));
	}
	rows_end(r);
	return is_found;
}

static void read_points(
    struct db *d, const struct list_numbers *q, const struct line *l, struct number_series *s)
{
	struct rows *r = db_rows(d,
	    "SELECT at_ms, value, head_sha, job_id FROM number_day WHERE accelerator = ?1"
	    " AND test_id = ?2 AND unit = ?3 AND day >= ?4 ORDER BY day",
	    V_TEXT(q->accelerator), V_INT(l->test_id), V_TEXT(l->unit), V_INT(day_of(q->since_ms)));

	while (rows_next(r)) {
		struct number_point *p;

		if ((s->n & (s->n - 1)) == 0)
			s->points = xrealloc(s->points, (s->n ? 2 * s->n : 1) * sizeof(*s->points));
		p = &s->points[s->n++];
		*p = (struct number_point){
		    .at_ms = rows_int(r, 0),
		    .value = rows_real(r, 1),
		    .job_id = rows_int(r, 3),
		};
		if (is_sha1(rows_text(r, 2)))
			snprintf(p->sha, sizeof(p->sha), "%s", rows_text(r, 2));
	}
}

static void read_names(struct db *d, const struct line *l, struct number_series *s)
{
	struct rows *r =
	    db_rows(d, "SELECT suite, name, dtype FROM test WHERE id = ?1", V_INT(l->test_id));

	if (rows_next(r)) {
		s->suite = rows_dup(r, 0);
		s->name = rows_dup(r, 1);
		s->dtype = rows_dup(r, 2);
	}
	rows_end(r);
	s->unit = xstrdup(l->unit);
}

static size_t add_line(struct db *d, struct list_numbers *q, const struct line *l)
{
	struct number_series s = {0};

	read_points(d, q, l, &s);
	if (!s.n)
		return 0;
	read_names(d, l, &s);
	q->list = xrealloc(q->list, (q->n + 1) * sizeof(*q->list));
	q->list[q->n++] = s;
	return s.n;
}

static int list_run(struct store_query *sq, struct db *d)
{
	struct list_numbers *q = CONTAINER_OF(sq, struct list_numbers, q);
	struct line at = {.test_id = q->after_test};
	size_t n_points = 0;

	snprintf(at.unit, sizeof(at.unit), "%s", q->after_unit ? q->after_unit : "");
	for (int n = 0; next_line(d, q->accelerator, &at, &at); n++) {
		n_points += add_line(d, q, &at);
		q->has_more = q->n >= (size_t)q->limit || n_points >= NUMBER_POINTS_MAX ||
			      n >= LINES_LOOKED_AT_MAX;
		if (q->has_more)
			break;
	}
	if (q->has_more) {
		struct line beyond;

		q->next_test = at.test_id;
		memcpy(q->next_unit, at.unit, sizeof(at.unit));
		q->has_more = next_line(d, q->accelerator, &at, &beyond);
	}
	if (db_status(d))
		list_numbers_release(q);
	return 0;
}

int store_list_numbers(struct store *s, struct list_numbers *q)
{
	q->list = NULL;
	q->n = 0;
	q->has_more = false;
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_numbers_release(struct list_numbers *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].suite);
		free(q->list[i].name);
		free(q->list[i].dtype);
		free(q->list[i].unit);
		free(q->list[i].points);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}
