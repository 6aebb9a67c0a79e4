/* The runners that take experiments. */
#include <string.h>

#include "base/alloc.h"
#include "base/strv.h"
#include "store/cells_moved.h"
#include "store/experiment_rows.h"

/* ---- for a change ---- */

struct rerunner *rerunners_of(struct db *d, int64_t change_id, const char *accelerator, size_t *n)
{
	struct rows *r = db_rows(d,
	    "SELECT x.id, x.runner, x.state IN ('done', 'expired', 'failed'), r.reruns = 'tests',"
	    " x.finish_ms, a.experiment_tests, a.experiment_per_head, c.head_sha,"
	    " c.merge_base_sha" EXPLAINABLE " ORDER BY x.runner",
	    V_INT(change_id), V_TEXT(accelerator));
	struct rerunner *list = NULL;

	*n = 0;
	while (rows_next(r)) {
		struct rerunner *u;

		list = xrealloc(list, (*n + 1) * sizeof(*list));
		u = &list[(*n)++];
		*u = (struct rerunner){
		    .dispatch_id = rows_dup(r, 0),
		    .runner = rows_dup(r, 1),
		    .has_ended = rows_int(r, 2),
		    .is_by_test = rows_int(r, 3),
		    .finish_ms = rows_int(r, 4) > 0 ? rows_int(r, 4) : DEFAULT_FINISH_MS,
		    .n_tests_max = rows_int(r, 5),
		    .n_rounds_max = rows_int(r, 6),
		    .sha = {[EXPERIMENT_HEAD] = rows_dup(r, 7), [EXPERIMENT_BASE] = rows_dup(r, 8)},
		};
	}
	return list;
}

void rerunners_release(struct rerunner *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].dispatch_id);
		free(list[i].runner);
		free(list[i].sha[EXPERIMENT_HEAD]);
		free(list[i].sha[EXPERIMENT_BASE]);
	}
	free(list);
}

/* ---- when the registry changes ---- */

/* Each with its runners that take experiments, as one text; the name is a part of it. */
#define TAKERS                                                                                     \
	"SELECT n.name, json_array(n.name, (SELECT json_group_array(json_array(t.name, t.kind,"    \
	" t.target)) FROM (SELECT r.name, r.kind, lower(r.target) AS target FROM runner r"         \
	"  CROSS JOIN accelerator a ON a.name = r.accelerator WHERE r.accelerator = n.name"        \
	"  AND " RUNNER_TAKES_EXPERIMENTS " ORDER BY r.name) t)) FROM accelerator n"

char **experiments_takers(struct db *d)
{
	struct rows *r = db_rows(d, TAKERS);
	char **list = strv_copy(NULL);

	while (rows_next(r))
		strv_add(&list, rows_text(r, 1));
	return list;
}

static void recheck(struct db *d, const char *accelerator, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT p.change_id FROM pull p WHERE p.state = 'open' AND EXISTS"
	    " (SELECT 1 FROM verdict v WHERE v.change_id = p.change_id AND v.accelerator = ?1"
	    "  AND v.attribution IS NOT NULL) UNION SELECT change_id FROM experiment"
	    " WHERE accelerator = ?1 AND " EXPERIMENT_IS_OPEN,
	    V_TEXT(accelerator));
	int64_t *ids = NULL;
	size_t n = 0;

	while (rows_next(r)) {
		ids = xrealloc(ids, (n + 1) * sizeof(*ids));
		ids[n++] = rows_int(r, 0);
	}
	for (size_t i = 0; i < n; i++)
		cells_moved(d, ids[i], accelerator, CELLS_RERUNS_CHANGED, now_ms);
	free(ids);
}

void experiments_recheck(struct db *d, char *const *before, int64_t now_ms)
{
	struct rows *r = db_rows(d, TAKERS);
	char **changed = strv_copy(NULL);

	while (rows_next(r))
		if (!strv_contains((const char *const *)before, rows_text(r, 1)))
			strv_add(&changed, rows_text(r, 0));
	for (char **name = changed; *name; name++)
		recheck(d, *name, now_ms);
	strv_free(changed);
}
