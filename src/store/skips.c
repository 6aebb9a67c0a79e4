#include "store/skips.h"

#include "store/cells_moved.h"

/* `t` is the test that s.value, SUITE/TEST, names; a suite has no slash. */
#define TEST_IS_NAMED                                                                              \
	" ON t.suite = substr(s.value, 1, instr(s.value, '/') - 1)"                                \
	" AND t.name = substr(s.value, instr(s.value, '/') + 1)"

void skips_apply(struct db *d, int64_t change_id, const char *accelerator)
{
	char *skip = db_text(d, "SELECT skip FROM accelerator WHERE name = ?1 AND skip <> '[]'",
	    V_TEXT(accelerator));

	if (skip)
		db_exec(d,
		    "UPDATE verdict SET status = 'SKIP', attribution = NULL, reason = NULL,"
		    " evidence_job = NULL, evidence_url = NULL, file = NULL, line = NULL,"
		    " message = 'not supported by this accelerator'"
		    " WHERE change_id = ?1 AND accelerator = ?2 AND test_id IN"
		    " (SELECT t.id FROM json_each(?3) s JOIN test t" TEST_IS_NAMED ")",
		    V_INT(change_id), V_TEXT(accelerator), V_TEXT(skip));
	free(skip);
}

void skips_changed(struct db *d, const char *accelerator, const char *before, int64_t now_ms)
{
	int64_t ids[SKIPS_CHANGES_MAX];
	size_t n = 0;
	struct rows *r = db_rows(d,
	    "WITH moved AS ("
	    " SELECT b.value FROM json_each(?2) b WHERE b.value NOT IN"
	    "  (SELECT value FROM accelerator a, json_each(a.skip) WHERE a.name = ?1)"
	    " UNION SELECT s.value FROM accelerator a, json_each(a.skip) s WHERE a.name = ?1"
	    "  AND s.value NOT IN (SELECT value FROM json_each(?2))),"
	    " concerned AS (SELECT t.id FROM moved s JOIN test t" TEST_IS_NAMED ")"
	    " SELECT DISTINCT p.change_id FROM pull p WHERE p.state = 'open' AND EXISTS"
	    " (SELECT 1 FROM concerned c JOIN verdict v ON v.change_id = p.change_id"
	    "  AND v.accelerator = ?1 AND v.test_id = c.id)"
	    " ORDER BY p.change_id DESC LIMIT ?3",
	    V_TEXT(accelerator), V_TEXT(before), V_INT(SKIPS_CHANGES_MAX));

	while (rows_next(r))
		ids[n++] = rows_int(r, 0);
	for (size_t i = 0; i < n; i++)
		cells_moved(d, ids[i], accelerator, CELLS_SKIPS_CHANGED, now_ms);
}
