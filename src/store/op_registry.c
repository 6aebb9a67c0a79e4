/* The registry's mirror: names, titles and links stay when a vendor leaves, so that old
 * results keep theirs. */
#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "store/db.h"
#include "store/registry.h"

static void put_runner(struct db *d, const char *accelerator, const struct runner *r)
{
	const char *target = r->kind == RUNNER_WEBHOOK ? "" /* may hold a key */ : r->repository;

	db_exec(d,
	    "INSERT INTO runner (accelerator, name, kind, target, is_gone)"
	    " VALUES (?1, ?2, ?3, ?4, 0) ON CONFLICT (accelerator, name) DO UPDATE"
	    " SET kind = excluded.kind, target = excluded.target, is_gone = 0",
	    V_TEXT(accelerator), V_TEXT(r->name), V_TEXT(runner_kind_name(r->kind)),
	    V_TEXT(target ? target : ""));
}

static void put_accelerator(struct db *d, const struct accelerator *a, int64_t now_ms)
{
	json_t *oncall = json_array();
	char *text;

	for (char **login = a->oncall; login && *login; login++)
		json_array_append_new(oncall, json_string(*login));
	text = json_text(oncall);
	json_decref(oncall);
	db_exec(d,
	    "INSERT INTO accelerator (name, title, vendor, level, docs_url, help_url, oncall,"
	    " is_gone, first_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)"
	    " ON CONFLICT (name) DO UPDATE SET title = excluded.title, vendor = excluded.vendor,"
	    " level = excluded.level, docs_url = excluded.docs_url,"
	    " help_url = excluded.help_url, oncall = excluded.oncall, is_gone = 0",
	    V_TEXT(a->name), V_TEXT(a->title ? a->title : a->name), V_TEXT(a->vendor),
	    V_INT(a->level), V_TEXT(a->docs_url), V_TEXT(a->help_url), V_TEXT(text), V_INT(now_ms));
	free(text);
	for (size_t i = 0; i < a->n_runners; i++)
		put_runner(d, a->name, &a->runners[i]);
}

static int mirror_run(struct store_op *op, struct db *d)
{
	struct mirror_registry *o = CONTAINER_OF(op, struct mirror_registry, op);

	db_exec(d, "UPDATE accelerator SET is_gone = 1");
	db_exec(d, "UPDATE runner SET is_gone = 1");
	for (size_t i = 0; i < o->n; i++)
		put_accelerator(d, &o->list[i], o->now_ms);
	db_tell(d, STORE_CHANGES);
	return 0;
}

int store_mirror_registry(struct store *s, struct mirror_registry *op)
{
	op->op.run = mirror_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
