/* Known issues as attribution asks for them, inside a writer's transaction. */
#include "store/known_issues.h"

#include "base/alloc.h"
#include "base/str.h"
#include "model/trigger.h"

void known_issue_release(struct known_issue *k)
{
	free(k->pattern);
	free(k->accelerator);
	free(k->url);
	*k = (struct known_issue){0};
}

struct known_issues known_issues_read(struct db *d, int64_t now_ms)
{
	struct known_issues ret = {0};
	struct rows *r = db_rows(d,
	    "SELECT id, pattern, accelerator, url, until_ms, created_ms FROM known_issue"
	    " WHERE until_ms IS NULL OR until_ms > ?1 ORDER BY id",
	    V_INT(now_ms));

	while (rows_next(r)) {
		if ((ret.n & (ret.n - 1)) == 0)
			ret.list = xrealloc(ret.list, (ret.n ? 2 * ret.n : 1) * sizeof(*ret.list));
		ret.list[ret.n++] = (struct known_issue){
		    .id = rows_int(r, 0),
		    .pattern = rows_dup(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .url = rows_dup(r, 3),
		    .until_ms = rows_int(r, 4),
		    .created_ms = rows_int(r, 5),
		};
	}
	return ret;
}

void known_issues_free(struct known_issues *k)
{
	for (size_t i = 0; i < k->n; i++)
		known_issue_release(&k->list[i]);
	FREE_AND_NULL(k->list);
	k->n = 0;
}

bool known_issue_matches(
    const struct known_issue *k, const char *accelerator, const char *suite, const char *test)
{
	char *path;
	bool is_match;

	if (k->accelerator && !str_eq(k->accelerator, accelerator))
		return false;
	path = xasprintf("%s/%s", suite, test);
	is_match = glob_matches(k->pattern, path);
	free(path);
	return is_match;
}

const struct known_issue *known_issue_find(
    const struct known_issues *k, const char *accelerator, const char *suite, const char *test)
{
	for (size_t i = 0; i < k->n; i++)
		if (known_issue_matches(&k->list[i], accelerator, suite, test))
			return &k->list[i];
	return NULL;
}

void known_issue_matched(struct db *d, int64_t id, int64_t change_id, int64_t now_ms)
{
	bool is_new = !db_has(d, "SELECT 1 FROM known_match WHERE issue_id = ?1 AND change_id = ?2",
	    V_INT(id), V_INT(change_id));

	db_exec(d,
	    "INSERT INTO known_match (issue_id, change_id, at_ms) VALUES (?1, ?2, ?3)"
	    " ON CONFLICT (issue_id, change_id) DO UPDATE SET at_ms = excluded.at_ms",
	    V_INT(id), V_INT(change_id), V_INT(now_ms));
	db_exec(d,
	    "UPDATE known_issue SET last_match_ms = ?2, n_matches = n_matches + ?3 WHERE id = ?1",
	    V_INT(id), V_INT(now_ms), V_INT(is_new));
}
