/* Whether the results of an experiment's run prove anything. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/cells_moved.h"
#include "store/experiment_rows.h"

enum {
	SHA_SHORT_CHARS = 7,
	SHOWN_MAX_BYTES = 60, /* of what a vendor says of its machine */
	/* Between two jobs of a run that report one by one. */
	TESTS_COME_MS = 15000,
};

/* ---- what a job says of its machine ---- */

struct machine {
	char *workflow, *name;
	char *torch_commit, *device, *extension; /* NULL: it does not say */
};
struct machine_list {
	struct machine *at;
	size_t n;
};

#define MACHINE_COLUMNS                                                                            \
	"j.workflow, j.name, json_extract(j.environment, '$.torch_commit'),"                       \
	" json_extract(j.environment, '$.device'),"                                                \
	" json_extract(j.environment, '$.extension.version')"

static struct machine_list take_machines(struct rows *r)
{
	struct machine_list l = {0};

	while (rows_next(r)) {
		l.at = xrealloc(l.at, (l.n + 1) * sizeof(*l.at));
		l.at[l.n++] = (struct machine){
		    rows_dup(r, 0), rows_dup(r, 1), rows_dup(r, 2), rows_dup(r, 3), rows_dup(r, 4)};
	}
	return l;
}

static void release_machines(struct machine_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->at[i].workflow);
		free(l->at[i].name);
		free(l->at[i].torch_commit);
		free(l->at[i].device);
		free(l->at[i].extension);
	}
	free(l->at);
}

/* A text that can be no commit ("unknown") names none. */
static bool is_other_commit(const char *commit, const char *sha)
{
	size_t n = commit ? strspn(commit, "0123456789abcdefABCDEF") : 0;

	return n >= SHA_SHORT_CHARS && commit[n] == '\0' &&
	       (n > strlen(sha) || strncasecmp(commit, sha, n) != 0);
}

static bool is_same_job(const struct machine *a, const struct machine *b)
{
	return strcmp(a->workflow, b->workflow) == 0 && strcmp(a->name, b->name) == 0;
}

/* Whether that is what the first run's job of this name said, or, where it has none of this name, any of its jobs.
 * Where one of the two says nothing there is nothing to compare. */
static bool is_as_before(const struct machine *m, const struct machine_list *before, bool is_device)
{
	const char *is = is_device ? m->device : m->extension;
	bool has_same_job = false, has_any = false;

	for (size_t i = 0; i < before->n; i++)
		has_same_job |= is_same_job(m, &before->at[i]);
	for (size_t i = 0; is && i < before->n; i++) {
		const struct machine *b = &before->at[i];
		const char *was = is_device ? b->device : b->extension;

		if (!was || (has_same_job && !is_same_job(m, b)))
			continue;
		if (strcmp(is, was) == 0)
			return true;
		has_any = true;
	}
	return !has_any;
}

/* "WHAT: VENDOR'S TEXT", the text cut to size. free(). */
static char *why_other(const char *what, const char *text)
{
	size_t n = strlen(text), n_shown = utf8_cut(text, n, SHOWN_MAX_BYTES);

	return xasprintf("%s: %.*s%s", what, (int)n_shown, text, n_shown < n ? "…" : "");
}

/* NULL: nothing speaks against it. free(). */
static char *why_machine(struct db *d, const struct experiment *e)
{
	struct machine_list now = take_machines(db_rows(d,
	    "SELECT " MACHINE_COLUMNS " FROM job j WHERE j.change_id = ?1 AND j.is_current = 1"
	    " AND j.environment IS NOT NULL ORDER BY j.id",
	    V_INT(e->run_change_id)));
	struct machine_list before = take_machines(db_rows(d,
	    "SELECT " MACHINE_COLUMNS " FROM job j WHERE j.change_id = ?1 AND j.dispatch_id = ?2"
	    " AND j.accelerator = ?3 AND j.environment IS NOT NULL ORDER BY j.id",
	    V_INT(e->change_id), V_TEXT(e->dispatch_id), V_TEXT(e->accelerator)));
	char *why = NULL;

	for (size_t i = 0; !why && i < now.n; i++) {
		const struct machine *m = &now.at[i];

		if (is_other_commit(m->torch_commit, e->sha))
			why = xasprintf("it tested commit %.40s instead", m->torch_commit);
		else if (!is_as_before(m, &before, true))
			why = why_other("it ran on another device", m->device);
		else if (!is_as_before(m, &before, false))
			why =
			    why_other("it ran with another version of the extension", m->extension);
	}
	release_machines(&now);
	release_machines(&before);
	return why;
}

/* ---- one run, told twice ---- */

/* A URL that first runs of the accelerator share is no run's own: a dashboard, or the newest build. */
#define SAME_ARTIFACT(accelerator)                                                                 \
	"(a.artifact_url = b.artifact_url AND a.artifact_url <> '' AND a.artifact_url NOT IN"      \
	" (SELECT artifact_url FROM (SELECT j.artifact_url, j.dispatch_id FROM job j"              \
	"   WHERE j.accelerator = " accelerator                                                    \
	" AND j.id > 0 AND NOT EXISTS (SELECT 1 FROM change c"                                     \
	"    WHERE c.id = j.change_id AND c.kind = 'experiment') ORDER BY j.id DESC LIMIT 200)"    \
	"  WHERE artifact_url IS NOT NULL GROUP BY artifact_url"                                   \
	"  HAVING COUNT(DISTINCT dispatch_id) > 1))"
#define SAME_JOB "a.run_id = b.run_id AND a.workflow = b.workflow AND a.name = b.name"

/* The first run itself, under the experiment's name. */
static bool is_first_run(struct db *d, const struct experiment *e)
{
	return db_has(d,
	    "SELECT 1 FROM job a CROSS JOIN job b ON b.change_id = ?2 AND b.dispatch_id = ?3"
	    " AND b.accelerator = ?4 WHERE a.change_id = ?1 AND a.digest IS NOT NULL"
	    " AND (" SAME_ARTIFACT("?4") " OR (" SAME_JOB
					 " AND a.run_attempt = b.run_attempt)) LIMIT 1",
	    V_INT(e->run_change_id), V_INT(e->change_id), V_TEXT(e->dispatch_id),
	    V_TEXT(e->accelerator));
}

/* Experiments that were reported with the same run: of the other commit, because which of the two it tested cannot be known, or
 * an earlier one of the same commit, because one run counts once. The outcome on a merge base is shared, so the other one
 * may be of another change. */
static struct experiment_list twins_of(struct db *d, const struct experiment *e)
{
	return experiments_take(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment o WHERE o.id IN"
	    "  (SELECT id FROM experiment WHERE change_id = ?2 AND accelerator = ?3"
	    "   UNION SELECT id FROM experiment WHERE accelerator = ?3 AND side = 'base'"
	    "   AND sha = (SELECT merge_base_sha FROM change WHERE id = ?2)"
	    "   UNION SELECT h.id FROM change own CROSS JOIN change c"
	    "   ON c.repository_key = own.repository_key AND c.merge_base_sha = ?6"
	    "   CROSS JOIN experiment h ON h.change_id = c.id AND h.accelerator = ?3"
	    "   AND h.side = 'head' WHERE own.id = ?2 AND ?5 = 'base')"
	    " AND o.runner = ?4 AND (o.side <> ?5 OR o.sha <> ?6 OR (o.change_id = ?2 AND o.id < "
	    "?7))"
	    " AND o.run_change_id IS NOT NULL AND EXISTS"
	    "  (SELECT 1 FROM job a CROSS JOIN job b ON b.change_id = o.run_change_id"
	    "   AND b.digest IS NOT NULL WHERE a.change_id = ?1 AND a.digest IS NOT NULL"
	    "   AND (" SAME_ARTIFACT("?3") " OR (" SAME_JOB ")))",
	    V_INT(e->run_change_id), V_INT(e->change_id), V_TEXT(e->accelerator), V_TEXT(e->runner),
	    V_TEXT(experiment_side_name(e->side)), V_TEXT(e->sha), V_INT(e->id)));
}

static const char TOLD_TWICE[] = "the same run was reported for the head and for the merge base";
static const char TOLD_BEFORE[] = "the same run was reported for an earlier experiment";

static bool is_of_commit(const struct experiment *twin, const struct experiment *e)
{
	return twin->side == e->side && strcmp(twin->sha, e->sha) == 0;
}

static const char *why_twins(const struct experiment_list *twins, const struct experiment *e)
{
	for (size_t i = 0; i < twins->n; i++)
		if (!is_of_commit(&twins->at[i], e))
			return TOLD_TWICE;
	return twins->n ? TOLD_BEFORE : NULL;
}

/* Of `experiment e`. */
#define HAS_ANY_TEST                                                                               \
	"EXISTS (SELECT 1 FROM experiment_test t CROSS JOIN verdict v"                             \
	" ON v.change_id = e.run_change_id AND v.accelerator = e.accelerator"                      \
	" AND v.test_id = t.test_id WHERE t.experiment_id = e.id"                                  \
	" AND v.status IN ('PASS', 'FAIL', 'ERROR', 'DONE'))"

bool experiment_has_any_test(struct db *d, const struct experiment *e)
{
	return db_has(
	    d, "SELECT 1 FROM experiment e WHERE e.id = ?1 AND " HAS_ANY_TEST, V_INT(e->id));
}

#define WITHOUT_TESTS                                                                              \
	" FROM experiment e CROSS JOIN dispatch x ON x.change_id = e.run_change_id"                \
	" AND x.is_current = 1 AND x.state = 'done' WHERE e." EXPERIMENT_IS_OPEN                   \
	" AND +e.run_change_id IS NOT NULL AND NOT " HAS_ANY_TEST

bool experiment_may_get_tests(struct db *d, const struct experiment *e, int64_t now_ms)
{
	return db_has(d, "SELECT 1" WITHOUT_TESTS " AND e.id = ?1 AND x.finished_ms > ?2",
	    V_INT(e->id), V_INT(now_ms - TESTS_COME_MS));
}

int64_t experiments_without_tests_end(struct db *d, int64_t now_ms)
{
	struct experiment_list l = experiments_take(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE id IN (SELECT e.id" WITHOUT_TESTS
	    " AND x.finished_ms <= ?1)",
	    V_INT(now_ms - TESTS_COME_MS)));
	int64_t finished_ms;

	for (size_t i = 0; i < l.n; i++)
		cells_moved(
		    d, l.at[i].run_change_id, l.at[i].accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
	experiment_list_release(&l);
	finished_ms = db_int(d, 0, "SELECT MIN(x.finished_ms)" WITHOUT_TESTS);
	return finished_ms ? finished_ms + TESTS_COME_MS : 0;
}

/* NULL: it proves something. free(). */
static char *why_void(struct db *d, const struct experiment *e, const struct experiment_list *twins)
{
	const char *twice = why_twins(twins, e);
	char *why;

	if (twice)
		return xstrdup(twice);
	if (is_first_run(d, e))
		return xstrdup("the first run was reported once more");
	why = why_machine(d, e);
	if (!why && !experiment_has_any_test(d, e))
		why = xstrdup("none of its tests was reported");
	return why;
}

/* Its run is there. Twins that counted as proof until now count no longer, and where they explain other changes, these
 * are attributed again, too: when all of the experiments have their states. */
void experiment_conclude(struct db *d, const struct experiment *e, int64_t now_ms)
{
	struct experiment_list twins = twins_of(d, e);
	char *why = why_void(d, e, &twins);

	for (size_t i = 0; i < twins.n; i++)
		if (!is_of_commit(&twins.at[i], e) && strcmp(twins.at[i].state, "done") == 0)
			experiment_end(d, &twins.at[i], "void", TOLD_TWICE, now_ms);
	experiment_end(d, e, why ? "void" : "done", why, now_ms);
	for (size_t i = 0; i < twins.n; i++) {
		const struct experiment *twin = &twins.at[i];

		if (is_of_commit(twin, e) || strcmp(twin->state, "done") != 0)
			continue;
		experiment_sharers_due(d, twin, now_ms);
		if (twin->change_id != e->change_id)
			cells_moved(
			    d, twin->change_id, twin->accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
	}
	experiment_list_release(&twins);
	free(why);
}
