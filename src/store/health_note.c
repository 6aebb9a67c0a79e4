#include "store/health_note.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/health.h"
#include "store/cells_moved.h"
#include "store/run_note.h"

enum {
	RUNS_MAX = 200,    /* looked through for HEALTH_LOOKS_AT that count */
	CELLS_MAX = 8,     /* of a change, to see whether others are red alike */
	SHARED_BY_MIN = 3, /* other authors */
	WISHES_MAX = 100,  /* GitHub takes 500 content writes an hour */
};

static const int64_t WISHES_LOOK_BACK_MS = INT64_C(14) * 86400 * 1000;

struct sample {
	int64_t change_id;
	char *author; /* of a pull request; NULL: a push, or nobody knows */
	bool is_red, is_own;
};

struct samples {
	struct sample at[HEALTH_LOOKS_AT];
	size_t n;
};

static bool has_author(const struct samples *s, const char *author)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].author && strcmp(s->at[i].author, author) == 0)
			return true;
	return false;
}

/* One an author, whose changes may be the same one in several heads or parts; each push is one. */
static void read_samples(struct db *d, const char *accelerator, struct samples *s)
{
	struct rows *r = db_rows(d,
	    "SELECT r.change_id, r.outcome, CASE WHEN r.is_push THEN NULL ELSE c.author END"
	    " FROM run r JOIN change c ON c.id = r.change_id"
	    " WHERE r.accelerator = ?1 AND r.outcome <> ?2"
	    " ORDER BY r.ended_ms DESC, r.change_id DESC LIMIT ?3",
	    V_TEXT(accelerator), V_TEXT(RUN_NOTHING), V_INT(RUNS_MAX));

	while (s->n < HEALTH_LOOKS_AT && rows_next(r)) {
		const char *outcome = rows_text(r, 1);

		if (!rows_is_null(r, 2) && has_author(s, rows_text(r, 2)))
			continue;
		s->at[s->n++] = (struct sample){
		    .change_id = rows_int(r, 0),
		    .author = rows_dup(r, 2),
		    .is_red = strcmp(outcome, RUN_GREEN) != 0,
		    .is_own = strcmp(outcome, RUN_OWN) == 0,
		};
	}
	rows_end(r);
}

/* Several others, who have nothing to do with each other, broke the very same test? Nobody did. */
static bool is_shared(struct db *d, const char *accelerator, const struct samples *s, size_t i)
{
	int64_t oldest = s->at[0].change_id;
	struct rows *r;
	bool is_found = false;

	for (size_t k = 1; k < s->n; k++)
		oldest = s->at[k].change_id < oldest ? s->at[k].change_id : oldest;
	r = db_rows(d,
	    "SELECT test_id FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
	    " AND attribution = 'NEW' LIMIT ?3",
	    V_INT(s->at[i].change_id), V_TEXT(accelerator), V_INT(CELLS_MAX));
	while (!is_found && rows_next(r))
		is_found = db_int(d, 0,
			       "SELECT COUNT(DISTINCT c.author) FROM verdict v"
			       " JOIN change c ON c.id = v.change_id WHERE v.accelerator = ?1"
			       " AND v.test_id = ?2 AND v.change_id >= ?3"
			       " AND v.attribution IS NOT NULL AND c.kind = 'pull_request'"
			       " AND c.author <> ?4",
			       V_TEXT(accelerator), V_INT(rows_int(r, 0)), V_INT(oldest),
			       V_TEXT(s->at[i].author ? s->at[i].author : "")) >= SHARED_BY_MIN;
	rows_end(r);
	return is_found;
}

static void wish_comments(struct db *d, const char *accelerator, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT x.change_id FROM dispatch x JOIN change c ON c.id = x.change_id"
	    " WHERE x.accelerator = ?1 AND x.created_ms >= ?2 AND x.number > 0"
	    " AND x.is_current = 1 AND c.state = 'open'"
	    " GROUP BY x.change_id ORDER BY MAX(x.created_ms) DESC LIMIT ?3",
	    V_TEXT(accelerator), V_INT(now_ms - WISHES_LOOK_BACK_MS), V_INT(WISHES_MAX));

	while (rows_next(r))
		cells_moved(d, rows_int(r, 0), NULL, CELLS_HEALTH_CHANGED, now_ms);
}

void health_note(struct db *d, const char *accelerator, int64_t now_ms)
{
	bool was = db_has(d,
	    "SELECT 1 FROM accelerator WHERE name = ?1 AND unhealthy_since_ms IS NOT NULL",
	    V_TEXT(accelerator));
	struct health_sample judged[HEALTH_LOOKS_AT];
	struct samples s = {.n = 0};
	bool is;

	read_samples(d, accelerator, &s);
	for (size_t i = 0; i < s.n; i++)
		judged[i] = (struct health_sample){
		    .is_red = s.at[i].is_red,
		    .is_attributed = s.at[i].is_own && !is_shared(d, accelerator, &s, i),
		};
	is = health_is_unhealthy(judged, s.n, was);
	for (size_t i = 0; i < s.n; i++)
		free(s.at[i].author);
	if (is == was)
		return;
	db_exec(d, "UPDATE accelerator SET unhealthy_since_ms = ?2 WHERE name = ?1",
	    V_TEXT(accelerator), V_INT_OR_NULL(is ? now_ms : 0));
	log_event(is ? LOG_WARN : LOG_INFO, is ? "accelerator_unhealthy" : "accelerator_healthy",
	    LOG_S("accelerator", accelerator), LOG_I("looked_at", (int64_t)s.n));
	wish_comments(d, accelerator, now_ms);
}
