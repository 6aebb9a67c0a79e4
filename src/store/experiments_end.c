/* When the run of an experiment has ended. */
#include <string.h>

#include "base/alloc.h"
#include "model/states.h"
#include "store/cells_moved.h"
#include "store/experiment_rows.h"
#include "store/requests.h"
#include "store/stored_dispatch.h"

enum { SHARERS_MAX = 200 };

void experiment_sharers_due(struct db *d, const struct experiment *e, int64_t now_ms)
{
	struct rows *r;
	int64_t *ids = NULL;
	size_t n = 0;

	if (e->side != EXPERIMENT_BASE)
		return;
	r = db_rows(d,
	    "SELECT c.id FROM change o CROSS JOIN change c ON c.repository_key = o.repository_key"
	    " AND c.merge_base_sha = ?2 WHERE o.id = ?1 AND c.id <> o.id"
	    " AND c.kind = 'pull_request' AND c.state = 'open' AND EXISTS"
	    "  (SELECT 1 FROM verdict v WHERE v.change_id = c.id AND v.accelerator = ?3"
	    "   AND v.attribution IS NOT NULL) ORDER BY c.active_ms DESC LIMIT ?4",
	    V_INT(e->change_id), V_TEXT(e->sha), V_TEXT(e->accelerator), V_INT(SHARERS_MAX));
	while (rows_next(r)) {
		ids = xrealloc(ids, (n + 1) * sizeof(*ids));
		ids[n++] = rows_int(r, 0);
	}
	for (size_t i = 0; i < n; i++)
		cells_moved(d, ids[i], e->accelerator, CELLS_BASE_TESTED, now_ms);
	free(ids);
}

/* ---- they go with the change that they explain ---- */

int64_t experiments_next_run(struct db *d, int64_t change_id)
{
	return db_int(d, 0,
	    "SELECT c.id FROM experiment e CROSS JOIN change c ON c.id = e.run_change_id"
	    " WHERE e.change_id = ?1 LIMIT 1",
	    V_INT(change_id));
}

void experiments_drop(struct db *d, int64_t change_id)
{
	db_exec(d,
	    "DELETE FROM experiment_test WHERE experiment_id IN"
	    " (SELECT id FROM experiment WHERE change_id = ?1)",
	    V_INT(change_id));
	db_exec(d, "DELETE FROM experiment WHERE change_id = ?1", V_INT(change_id));
}

/* ---- its state ----
 *
 * Both sides that a vendor's CI runs at the same time count together, when the last of them has ended: so one run that is
 * reported for both is found out before it has proved anything. A machine reports each lease for itself. */

#define COUNTERPART                                                                                \
	" FROM experiment o CROSS JOIN dispatch x ON x.change_id = o.run_change_id"                \
	" AND x.is_current = 1 WHERE o.change_id = ?1 AND o.accelerator = ?2 AND o.runner = ?3"    \
	" AND o.side <> ?4 AND o.cause = ?5 AND (o.cause = 'auto' OR (o.command_id = ?6"           \
	"  AND o.round = ?7)) AND o." EXPERIMENT_IS_OPEN
#define COUNTERPART_OF(e)                                                                          \
	V_INT((e)->change_id), V_TEXT((e)->accelerator), V_TEXT((e)->runner),                      \
	    V_TEXT(experiment_side_name((e)->side)), V_TEXT((e)->is_stress ? "stress" : "auto"),   \
	    V_INT((e)->command_id), V_INT((e)->round)

/* Jobs that are opened again and again move their deadlines, so it does not wait for longer than it may be open. */
static bool waits_for_counterpart(struct db *d, const struct experiment *e, int64_t now_ms)
{
	return strcmp(e->state, "started") == 0 && e->expires_ms > now_ms &&
	       db_has(d,
		   "SELECT 1" COUNTERPART " AND x.kind <> 'pull'"
		   " AND x." DISPATCH_IS_AT_WORK " LIMIT 1",
		   COUNTERPART_OF(e));
}

void experiment_counterpart_moves(struct db *d, const struct experiment *e, int64_t now_ms)
{
	int64_t run = db_int(d, 0,
	    "SELECT o.run_change_id" COUNTERPART " AND x.state NOT IN"
	    " ('queued', 'sent', 'acknowledged', 'running') LIMIT 1",
	    COUNTERPART_OF(e));

	if (run)
		cells_moved(d, run, e->accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
}

static bool find_run(struct db *d, int64_t run_change_id, struct experiment_list *ret,
    enum dispatch_state *ret_state, char **ret_error)
{
	struct rows *r;
	bool is_found;

	*ret = experiments_take(
	    db_rows(d, "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE run_change_id = ?1",
		V_INT(run_change_id)));
	r = db_rows(d,
	    "SELECT state, last_error FROM dispatch WHERE change_id = ?1 AND is_current = 1",
	    V_INT(run_change_id));
	is_found = rows_next(r);
	if (is_found) {
		*ret_state = dispatch_state_parse(rows_text(r, 0));
		*ret_error = rows_dup(r, 1);
	}
	rows_end(r);
	return is_found && ret->n;
}

/* It took too long, and the vendor's machine may still be at work on it. */
static void drop_requests(struct db *d, const struct experiment *e, int64_t now_ms)
{
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1 AND is_current = 1",
	    V_INT(e->run_change_id)));

	for (size_t i = 0; i < l.n; i++)
		request_drop(d, &l.at[i], now_ms);
	dispatch_list_release(&l);
}

/* Cells that come after the end change what an experiment proves, so it is judged again. One that was cancelled stays
 * so: nobody needs it. */
static bool follow(struct db *d, const struct experiment *e, enum dispatch_state state,
    const char *error, int64_t now_ms)
{
	switch (state) {
	case DISPATCH_DONE:
		if (experiment_may_get_tests(d, e, now_ms) ||
		    (waits_for_counterpart(d, e, now_ms) && experiment_has_any_test(d, e)))
			return false;
		experiment_conclude(d, e, now_ms);
		return true;
	case DISPATCH_EXPIRED:
	case DISPATCH_FAILED:
		if (strcmp(e->state, "expired") == 0)
			return false;
		experiment_end(d, e, "expired", error, now_ms);
		drop_requests(d, e, now_ms);
		return true;
	case DISPATCH_CANCELLED:
	case DISPATCH_SUPERSEDED:
		experiment_end(d, e, "cancelled", error, now_ms);
		return true;
	case DISPATCH_HELD:
	case DISPATCH_QUEUED:
	case DISPATCH_SENT:
	case DISPATCH_ACKNOWLEDGED:
	case DISPATCH_RUNNING:
	case N_DISPATCH_STATES:
		break;
	}
	return strcmp(e->state, "done") == 0;
}

bool experiments_follow(struct db *d, int64_t run_change_id, int64_t now_ms, int64_t *ret_explained)
{
	struct experiment_list l = {0};
	enum dispatch_state state = N_DISPATCH_STATES;
	char *error = NULL;
	bool has_moved = false;

	if (find_run(d, run_change_id, &l, &state, &error) &&
	    strcmp(l.at[0].state, "cancelled") != 0)
		has_moved = follow(d, &l.at[0], state, error, now_ms);
	if (has_moved) {
		*ret_explained = l.at[0].change_id;
		experiment_sharers_due(d, &l.at[0], now_ms);
		experiment_counterpart_moves(d, &l.at[0], now_ms);
	}
	experiment_list_release(&l);
	free(error);
	return has_moved;
}
