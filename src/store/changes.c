#include "store/changes.h"

#include "db/counters.h"
#include "db/key.h"
#include "store/branch_commits.h"
#include "verdict/cells_moved.h"

int64_t change_find(const struct view *d, enum change_kind kind, const char *repository, const char *head_sha)
{
	return db_int(d, 0, "SELECT id FROM change WHERE repository_key = ?1 AND head_sha = ?2 AND kind = ?3",
	    V_TEXT(repository_key(repository).text), V_TEXT(head_sha), V_TEXT(change_kind_name(kind)));
}

static void update_change(struct txn *d, int64_t id, const struct change_facts *f, int64_t now_ms)
{
	/* With another base branch the change has another merge base and touches other files. Its failures are attributed
	 * again. */
	if (f->base_ref && db_has(d, "SELECT 1 FROM change WHERE id = ?1 AND base_ref IS NOT NULL AND base_ref <> ?2",
			       V_INT(id), V_TEXT(f->base_ref))) {
		db_exec(d, "UPDATE change SET merge_base_sha = NULL, merge_base_ms = NULL WHERE id = ?1", V_INT(id));
		db_exec(d, "DELETE FROM change_files WHERE repository_key = ?1 AND head_sha = ?2",
		    V_TEXT(repository_key(f->repository).text), V_TEXT(f->head_sha));
		if (db_has(
			d, "SELECT 1 FROM verdict WHERE change_id = ?1 AND attribution IS NOT NULL LIMIT 1", V_INT(id)))
			cells_moved(d, id, NULL, CELLS_BASE_CHANGED, now_ms);
	}
	db_exec(d,
	    "UPDATE change SET ref = COALESCE(?2, ref), base_ref = COALESCE(?3, base_ref),"
	    " base_sha = COALESCE(?4, base_sha), title = COALESCE(?5, title),"
	    " author = COALESCE(?6, author), active_ms = ?7 WHERE id = ?1",
	    V_INT(id), V_TEXT(f->ref), V_TEXT(f->base_ref), V_TEXT(f->base_sha), V_TEXT(f->title), V_TEXT(f->author),
	    V_INT(now_ms));
}

int64_t change_put(struct txn *d, const struct change_facts *f, int64_t now_ms)
{
	int64_t id = change_find(d->view, f->kind, f->repository, f->head_sha);

	if (id && f->kind == CHANGE_PULL_REQUEST)
		change_touch(d, id, now_ms); /* change_settle() chooses the pull request whose facts it has */
	else if (id)
		update_change(d, id, f, now_ms);
	if (id)
		return id;
	if (f->kind == CHANGE_PULL_REQUEST)
		counter_add(d, COUNT_OPEN_CHANGES, 1);
	return db_insert(d,
	    "INSERT INTO change (kind, repository, repository_key, head_sha, ref, base_ref, base_sha, title, author,"
	    " state, created_ms, active_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open', ?10, ?10)",
	    V_TEXT(change_kind_name(f->kind)), V_TEXT(f->repository), V_TEXT(repository_key(f->repository).text),
	    V_TEXT(f->head_sha), V_TEXT(f->ref), V_TEXT(f->base_ref), V_TEXT(f->base_sha), V_TEXT(f->title),
	    V_TEXT(f->author), V_INT(now_ms));
}

void change_touch(struct txn *d, int64_t change_id, int64_t now_ms)
{
	db_exec(d, "UPDATE change SET active_ms = ?2 WHERE id = ?1", V_INT(change_id), V_INT(now_ms));
}

#define STORED_PULL_RECORD(F, S)                                                                                       \
	F(S, BOOL, is_known, NULL, "1", "")                                                                            \
	F(S, BOOL, is_open, NULL, "state = 'open'", "")                                                                \
	F(S, ID, change_id, NULL, "change_id", "")                                                                     \
	F(S, TIME, updated_ms, NULL, "updated_ms", "")
RECORD_DEFINE(stored_pull, STORED_PULL_RECORD);

struct stored_pull pull_find(const struct view *d, const char *repository, int64_t number)
{
	struct stored_pull p = {0};

	RECORD_READ_FIRST(d, stored_pull, STORED_PULL_RECORD, &p, "FROM pull WHERE repository_key = ?1 AND number = ?2",
	    V_TEXT(repository_key(repository).text), V_INT(number));
	return p;
}

void pull_put(struct txn *d, const char *repository, const struct pull_info *pull, int64_t change_id, int64_t since_ms)
{
	struct stored_pull before = pull_find(d->view, repository, pull->number);
	struct repository_key key = repository_key(repository);
	char *labels = pull->labels ? json_text_of_strings((const char *const *)pull->labels) : xstrdup("[]");

	db_exec(d,
	    "INSERT INTO pull (repository_key, number, repository, change_id, state, title, author,"
	    " association, labels, is_draft, base_ref, base_sha, updated_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
	    " ON CONFLICT (repository_key, number) DO UPDATE SET repository = excluded.repository,"
	    " change_id = excluded.change_id, state = excluded.state, title = COALESCE(excluded.title, pull.title),"
	    " author = COALESCE(excluded.author, pull.author),"
	    " association = COALESCE(excluded.association, pull.association),"
	    " labels = excluded.labels, is_draft = excluded.is_draft,"
	    " base_ref = COALESCE(excluded.base_ref, pull.base_ref),"
	    " base_sha = COALESCE(excluded.base_sha, pull.base_sha),"
	    " updated_ms = MAX(excluded.updated_ms, pull.updated_ms)",
	    V_TEXT(key.text), V_INT(pull->number), V_TEXT(repository), V_INT(change_id),
	    V_TEXT(pull->is_open ? "open" : "closed"), V_TEXT(pull->title), V_TEXT(pull->author),
	    V_TEXT(pull->author_association), V_TEXT(labels), V_INT(pull->is_draft), V_TEXT(pull->base_ref),
	    V_TEXT(pull->base_sha), V_INT(pull->updated_ms));
	if (!before.is_known || before.change_id != change_id)
		db_exec(d,
		    "INSERT INTO pull_head (repository_key, number, since_ms, change_id) VALUES (?1, ?2, ?3, ?4)"
		    " ON CONFLICT (repository_key, number, since_ms, change_id) DO NOTHING",
		    V_TEXT(key.text), V_INT(pull->number), V_INT(since_ms), V_INT(change_id));
	free(labels);
}

int64_t change_lead(const struct view *d, int64_t change_id)
{
	struct rows *r =
	    db_rows(d, "SELECT number FROM pull WHERE change_id = ?1 AND state = 'open' LIMIT 2", V_INT(change_id));
	int64_t only = rows_next(r) ? rows_key_number(r) : 0;
	bool has_others = only && rows_next(r);

	rows_end(r);
	if (!has_others) /* mostly; the order of several costs more */
		return only;
	return db_int(d, 0,
	    "SELECT p.number FROM pull p LEFT JOIN pull_head h ON h.repository_key = p.repository_key"
	    " AND h.number = p.number AND h.change_id = p.change_id WHERE p.change_id = ?1 AND p.state = 'open'"
	    " GROUP BY p.number, p.association ORDER BY COALESCE(p.association, '') IN"
	    " ('OWNER', 'MEMBER', 'COLLABORATOR') DESC, MIN(h.since_ms), p.number LIMIT 1",
	    V_INT(change_id));
}

int64_t change_pull(const struct view *d, int64_t change_id)
{
	int64_t lead = change_lead(d, change_id);

	return lead ? lead : db_int(d, 0, "SELECT MIN(number) FROM pull WHERE change_id = ?1", V_INT(change_id));
}

int64_t change_other_pull(const struct view *d, int64_t change_id, int64_t number)
{
	return db_int(d, 0, "SELECT MIN(number) FROM pull WHERE change_id = ?1 AND state = 'open' AND number <> ?2",
	    V_INT(change_id), V_INT(number));
}

/* Base, title and author of the lead. */
#define LEAD_FACTS_RECORD(F, S)                                                                                        \
	F(S, TEXT, repository, NULL, "c.repository", "")                                                               \
	F(S, TEXT, head_sha, NULL, "c.head_sha", "")                                                                   \
	F(S, TEXT, base_ref, NULL, "p.base_ref", "")                                                                   \
	F(S, TEXT, base_sha, NULL, "p.base_sha", "")                                                                   \
	F(S, TEXT, title, NULL, "p.title", "")                                                                         \
	F(S, TEXT, author, NULL, "p.author", "")
RECORD_LOCAL(lead_facts, LEAD_FACTS_RECORD)

static void follow_lead(struct txn *d, int64_t change_id, int64_t now_ms)
{
	struct lead_facts lead;

	if (!RECORD_READ_FIRST(d, lead_facts, LEAD_FACTS_RECORD, &lead,
		"FROM change c JOIN pull p ON p.change_id = c.id WHERE c.id = ?1 AND p.number = ?2", V_INT(change_id),
		V_INT(change_lead(d->view, change_id))))
		return;
	update_change(d, change_id,
	    &(struct change_facts){.repository = lead.repository,
		.head_sha = lead.head_sha,
		.base_ref = lead.base_ref,
		.base_sha = lead.base_sha,
		.title = lead.title,
		.author = lead.author},
	    now_ms);
	record_release(&lead_facts_record, &lead);
}

struct dispatch_list change_dispatches(const struct view *d, int64_t change_id)
{
	return DISPATCHES_WHERE(d,
	    "change_id = ?1 AND (is_current = 1 OR state = 'held') ORDER BY accelerator, runner, round DESC",
	    V_INT(change_id));
}

void change_settle(struct txn *d, int64_t change_id, int64_t now_ms)
{
	char *name = db_text(d, "SELECT state FROM change WHERE id = ?1", V_INT(change_id));
	enum change_state before = name ? change_state_parse(name) : N_CHANGE_STATES;
	enum change_state now = CHANGE_SUPERSEDED;
	struct dispatch_list l = {0};

	free(name);
	if (db_has(d, "SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open' LIMIT 1", V_INT(change_id)))
		now = CHANGE_OPEN;
	else if (db_has(d, "SELECT 1 FROM pull WHERE change_id = ?1 LIMIT 1", V_INT(change_id)))
		now = CHANGE_CLOSED;
	follow_lead(d, change_id, now_ms);
	if (now != CHANGE_OPEN)
		l = change_dispatches(d->view, change_id);
	for (size_t i = 0; i < l.n; i++)
		if (dispatch_end(d, &l.at[i], now == CHANGE_CLOSED ? DISPATCH_CANCELLED : DISPATCH_SUPERSEDED, now_ms))
			cells_moved(d, change_id, l.at[i].accelerator, CELLS_WITHDRAWN, now_ms);
	dispatch_list_release(&l);
	if (now == before)
		return;
	db_exec(d, "UPDATE change SET state = ?2, active_ms = ?3 WHERE id = ?1", V_INT(change_id),
	    V_TEXT(change_state_name(now)), V_INT(now_ms));
	counter_add(d, COUNT_OPEN_CHANGES, (now == CHANGE_OPEN) - (before == CHANGE_OPEN));
	cells_moved(d, change_id, NULL, CELLS_CHANGE_SETTLED, now_ms);
	db_notify_change(d, change_id);
}

/* ---- recorded without a test ---- */

static int note_head_run(struct store_op *op, struct txn *d)
{
	struct note_head *o = CONTAINER_OF(op, struct note_head, op);
	struct change_facts f = {
	    .kind = o->ref ? CHANGE_PUSH : CHANGE_PULL_REQUEST,
	    .repository = o->repository,
	    .head_sha = o->ref ? o->head_sha : o->pull->head_sha,
	    .ref = o->ref,
	};
	struct stored_pull known;
	int64_t id;

	if (o->ref) {
		change_put(d, &f, o->now_ms);
		branch_commits_put(
		    d, o->repository, o->ref, NULL, &(struct branch_commit){.sha = o->head_sha, .at_ms = o->now_ms}, 1);
		return 0;
	}
	known = pull_find(d->view, o->repository, o->pull->number);
	if (known.is_known && o->pull->updated_ms < known.updated_ms)
		return 0;
	f.base_ref = o->pull->base_ref;
	f.base_sha = o->pull->base_sha;
	f.title = o->pull->title;
	f.author = o->pull->author;
	id = change_put(d, &f, o->now_ms);
	pull_put(d, o->repository, o->pull, id, o->pull->updated_ms ? o->pull->updated_ms : o->now_ms);
	if (known.is_known && known.change_id != id)
		change_settle(d, known.change_id, o->now_ms);
	change_settle(d, id, o->now_ms);
	return 0;
}
STORE_OPERATION(note_head)

/* ---- files ---- */

static int put_files_run(struct store_op *op, struct txn *d)
{
	struct put_files *o = CONTAINER_OF(op, struct put_files, op);
	int64_t lead = change_lead(d->view, change_find(d->view, CHANGE_PULL_REQUEST, o->repository, o->head_sha));
	char *text;

	if (o->number && lead && lead != o->number)
		return 0;
	text = json_text_of_strings(o->files);
	db_exec(d,
	    "INSERT INTO change_files (repository_key, head_sha, files, created_ms)"
	    " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (repository_key, head_sha) DO UPDATE"
	    " SET files = excluded.files, created_ms = excluded.created_ms",
	    V_TEXT(repository_key(o->repository).text), V_TEXT(o->head_sha), V_TEXT(text), V_INT(o->now_ms));
	free(text);
	return 0;
}
STORE_OPERATION(put_files)

#define GET_FILES_RECORD(F, S) F(S, TEXTS, files, NULL, "files", "")
RECORD_DEFINE(get_files, GET_FILES_RECORD);

static int get_files_run(struct store_query *q, const struct view *d)
{
	struct get_files *g = CONTAINER_OF(q, struct get_files, q);

	RECORD_READ_FIRST(d, get_files, GET_FILES_RECORD, g,
	    "FROM change_files WHERE repository_key = ?1 AND head_sha = ?2", V_TEXT(repository_key(g->repository).text),
	    V_TEXT(g->head_sha));
	return 0;
}
STORE_QUERY_CLEARED(get_files, files)

/* ---- merge base ---- */

static int put_merge_base_run(struct store_op *op, struct txn *d)
{
	struct put_merge_base *o = CONTAINER_OF(op, struct put_merge_base, op);

	if (db_exec_count(d,
		"UPDATE change SET merge_base_sha = ?2, merge_base_ms = ?3 WHERE id = ?1"
		" AND (?4 IS NULL OR COALESCE(base_ref, base_sha) = ?4)",
		V_INT(o->change_id), V_TEXT(o->sha), V_INT_OR_NULL(o->commit_ms), V_TEXT(o->base)) == 0 &&
	    !db_status(d))
		return db_has(d, "SELECT 1 FROM change WHERE id = ?1", V_INT(o->change_id)) ? ERR_CONFLICT
											    : ERR_NOT_FOUND;
	cells_moved(d, o->change_id, NULL, CELLS_BASE_FOUND, o->now_ms);
	return 0;
}
STORE_OPERATION(put_merge_base)

/* ---- the records that the reconciler compares with GitHub ---- */

enum { PULLS_MAX = 100000 };

#define PULL_COLUMNS                                                                                                   \
	RECORD_SELECT(KNOWN_PULL_RECORD)                                                                               \
	" FROM pull p JOIN change c ON c.id = p.change_id WHERE p.repository_key = ?1"
RECORD_DEFINE(known_pull, KNOWN_PULL_RECORD);

static int list_pulls_run(struct store_query *q, const struct view *d)
{
	struct list_pulls *l = CONTAINER_OF(q, struct list_pulls, q);
	struct repository_key key = repository_key(l->repository);
	struct rows *r;

	if (l->only_open)
		r = db_rows(d, PULL_COLUMNS " AND p.state = 'open' ORDER BY p.number LIMIT ?2", V_TEXT(key.text),
		    V_INT(PULLS_MAX));
	else
		r = db_rows(d, PULL_COLUMNS " ORDER BY p.number LIMIT ?2", V_TEXT(key.text), V_INT(PULLS_MAX));
	RECORDS_READ(r, known_pull, l->list, l->n);
	return 0;
}
STORE_LIST(list_pulls, known_pull)

static int has_push_run(struct store_query *q, const struct view *d)
{
	struct has_push *h = CONTAINER_OF(q, struct has_push, q);

	h->is_known = change_find(d, CHANGE_PUSH, h->repository, h->head_sha) != 0;
	return 0;
}
STORE_QUERY(has_push)

/* ---- the change that a person names ---- */

RECORD_DEFINE_PART(tested_change, find_tested, TESTED_CHANGE_RECORD);
RECORD_DEFINE_PART(tested_pull, find_tested, TESTED_PULL_RECORD);

#define HEADS_RECORD(F, S)                                                                                             \
	F(S, INT, n, NULL, "COUNT(DISTINCT head_sha)", "")                                                             \
	F(S, TEXT, first, NULL, "MIN(head_sha)", "")
RECORD_LOCAL(heads, HEADS_RECORD)

static int find_tested_run(struct store_query *sq, const struct view *d)
{
	struct find_tested *q = CONTAINER_OF(sq, struct find_tested, q);
	struct repository_key key = repository_key(q->repository);
	struct heads heads = {0};
	int64_t id = 0;

	find_tested_release(q); /* of a failed attempt */
	if (q->number) {
		id = db_int(d, 0, "SELECT change_id FROM pull WHERE repository_key = ?1 AND number = ?2",
		    V_TEXT(key.text), V_INT(q->number));
	} else {
		RECORD_READ_FIRST(d, heads, HEADS_RECORD, &heads,
		    "FROM change WHERE repository_key = ?1 AND head_sha >= ?2 AND head_sha < ?2 || 'g'"
		    " AND kind IN ('pull_request', 'push')",
		    V_TEXT(key.text), V_TEXT(q->sha));
		/* If one commit is the head of a pull request and of a push, the pull request counts, because people read
		 * its comment. */
		if (heads.n == 1)
			id = db_int(d, 0,
			    "SELECT id FROM change WHERE repository_key = ?1 AND head_sha = ?2"
			    " AND kind IN ('pull_request', 'push') ORDER BY kind = 'push' LIMIT 1",
			    V_TEXT(key.text), V_TEXT(heads.first));
		record_release(&heads_record, &heads);
	}
	if (!id)
		return heads.n > 1 ? ERR_CONFLICT : ERR_NOT_FOUND;
	RECORD_READ_FIRST(d, tested_change, TESTED_CHANGE_RECORD, q, "FROM change WHERE id = ?1", V_INT(id));
	q->delivery_guid = db_text(d,
	    "SELECT delivery_guid FROM dispatch WHERE change_id = ?1"
	    " ORDER BY created_ms DESC, accelerator, runner, round DESC LIMIT 1",
	    V_INT(id));
	if (q->is_pull)
		RECORD_READ_FIRST(d, tested_pull, TESTED_PULL_RECORD, q,
		    "FROM pull WHERE change_id = ?1 AND (?2 = 0 OR number = ?2) ORDER BY number DESC LIMIT 1",
		    V_INT(id), V_INT(q->number ? q->number : change_lead(d, id)));
	return 0;
}
STORE_QUERY_CLEARED(find_tested, is_pull)

void find_tested_release(struct find_tested *q)
{
	record_release(&tested_change_record, q);
	FREE_AND_NULL(q->delivery_guid);
}
