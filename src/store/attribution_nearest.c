#include "store/attribution_nearest.h"

#include "model/failure_text.h"

#define NEAREST                                                                                    \
	"SELECT v.status, v.message, b.position FROM branch_commit b CROSS JOIN change x"          \
	" ON x.repository_key = b.repository_key AND x.head_sha = b.sha AND x.kind = 'push'"       \
	" CROSS JOIN verdict v ON v.change_id = x.id AND v.accelerator = ?5 AND v.test_id = ?6"    \
	" WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position >= ?3 AND b.position <= ?4"    \
	" AND v.status NOT IN ('SKIP', 'DONE')"

static struct nearest take_nearest(struct rows *r)
{
	struct nearest n = {.status = N_TEST_STATUSES};

	if (rows_next(r)) {
		n.status = test_status_parse(rows_text(r, 0));
		n.key = failure_text_key(rows_is_null(r, 1) ? NULL : rows_text(r, 1));
		n.position = rows_int(r, 2);
	}
	rows_end(r);
	return n;
}

static struct nearest nearest_older(const struct attribution_case *c, const char *ref,
    const struct red_cell *cell, int64_t position)
{
	return take_nearest(db_rows(c->d, NEAREST " ORDER BY b.position DESC LIMIT 1",
	    V_TEXT(c->key.text), V_TEXT(ref), V_INT(position - c->distance), V_INT(position),
	    V_TEXT(c->accelerator), V_INT(cell->test_id)));
}

static struct nearest nearest_newer(const struct attribution_case *c, const char *ref,
    const struct red_cell *cell, int64_t position)
{
	return take_nearest(db_rows(c->d, NEAREST " ORDER BY b.position LIMIT 1",
	    V_TEXT(c->key.text), V_TEXT(ref), V_INT(position), V_INT(position + c->distance),
	    V_TEXT(c->accelerator), V_INT(cell->test_id)));
}

bool nearest_is_green(const struct nearest *n)
{
	return n->status == TEST_PASS;
}

bool nearest_is_same(const struct nearest *n, const struct red_cell *cell)
{
	return n->status == cell->facts.mark.status && n->key == cell->facts.mark.key;
}

enum base_state attribution_base_state(const struct attribution_case *c, const char *ref,
    int64_t position, const struct red_cell *cell)
{
	struct nearest older, newer, oldest;

	if (position < 0)
		return BASE_NOT_KNOWN;
	older = nearest_older(c, ref, cell, position);
	if (older.status == N_TEST_STATUSES)
		return BASE_NOT_KNOWN;
	if (nearest_is_green(&older) && older.position == position)
		return BASE_IS_GREEN;
	newer = nearest_newer(c, ref, cell, position + 1);
	if (nearest_is_green(&older))
		return nearest_is_green(&newer) ? BASE_AMID_GREEN : BASE_NOT_KNOWN;
	if (!nearest_is_same(&older, cell))
		return BASE_NOT_KNOWN;
	oldest = nearest_older(c, ref, cell, older.position - 1);
	return nearest_is_green(&newer) && nearest_is_green(&oldest) ? BASE_NOT_KNOWN
								     : BASE_IS_BROKEN;
}
