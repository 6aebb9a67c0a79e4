/* outpostctl runner list and token list: the valid tokens, when and from where each was last
 * used, and what its machine is doing. */
#include "base/alloc.h"
#include "base/str.h"
#include "daemon/control_tokens.h"
#include "store/leases.h"

struct listing {
	struct http_request *request;
	struct daemon *daemon;
	char *accelerator; /* NULL: all */
	enum token_kind kind;
	struct list_tokens tokens;
	struct list_leases leases;
};

bool control_token_is_of(
    const struct token_row *row, enum token_kind kind, const char *accelerator, const char *name)
{
	return row->kind == kind && str_eq(row->accelerator, accelerator) &&
	       str_eq(row->name, name);
}

static void end(struct listing *l)
{
	list_tokens_release(&l->tokens);
	list_leases_release(&l->leases);
	free(l->accelerator);
	free(l);
}

static json_t *lease_json(const struct lease_row *row)
{
	json_t *v = json_object();

	json_set_str(v, "id", row->id);
	json_set_str(v, "dispatch", row->dispatch_id);
	json_set_str(v, "runner", row->runner);
	json_set_int(v, "attempt", row->attempt);
	json_set_int(v, "job", row->job_id);
	json_set_int(v, "pr", row->number);
	json_set_str(v, "head_sha", row->head_sha);
	json_set_time(v, "since", row->granted_ms);
	return v;
}

static json_t *leases_json(const struct listing *l, const struct token_row *row)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->leases.n; i++)
		if (str_eq(l->leases.list[i].accelerator, row->accelerator) &&
		    str_eq(l->leases.list[i].machine, row->name))
			json_array_append_new(list, lease_json(&l->leases.list[i]));
	return list;
}

static json_t *token_json(const struct listing *l, const struct token_row *row)
{
	const struct credentials *c = runners_credentials(l->daemon->runners);
	const char *address = row->last_address;
	int64_t used_ms = row->last_used_ms;
	json_t *v = json_object();

	/* What the store does not know yet. */
	(void)credentials_last_use(c, row->id, &used_ms, &address);
	json_set_int(v, "id", row->id);
	json_set_str(v, "kind", token_kind_name(row->kind));
	json_set_str(v, "accelerator", row->accelerator);
	json_object_set_new(v, "registered",
	    json_boolean(config_accelerator(l->daemon->config, row->accelerator) != NULL));
	json_set_time(v, "created", row->created_ms);
	json_set_time(v, "last_used", used_ms);
	json_set_str(v, "last_address", address);
	if (row->kind == TOKEN_RUNNER) {
		json_set_str(v, "name", row->name);
		json_object_set_new(v, "leases", leases_json(l, row));
	}
	return v;
}

static void on_leases(struct store_query *q)
{
	struct listing *l = CONTAINER_OF(q, struct listing, leases.q);
	json_t *list = json_array();

	for (size_t i = 0; i < l->tokens.n; i++) {
		const struct token_row *row = &l->tokens.list[i];

		if (row->kind == l->kind &&
		    (!l->accelerator || str_eq(l->accelerator, row->accelerator)))
			json_array_append_new(list, token_json(l, row));
	}
	if (q->err)
		control_respond_error(l->request, q->err, q->why.text);
	else
		control_respond(l->request, 200, json_pack("{s:O}", "tokens", list));
	json_decref(list);
	end(l);
}

/* One that left the registry is known as long as it has tokens: they are refused, and to revoke. */
static bool is_unknown(const struct listing *l)
{
	if (!l->accelerator || config_accelerator(l->daemon->config, l->accelerator))
		return false;
	for (size_t i = 0; i < l->tokens.n; i++)
		if (str_eq(l->tokens.list[i].accelerator, l->accelerator))
			return false;
	return true;
}

static void on_tokens(struct store_query *q)
{
	struct listing *l = CONTAINER_OF(q, struct listing, tokens.q);
	int err = q->err;
	char *text;

	if (!err && is_unknown(l)) {
		text = control_unknown_accelerator(l->daemon->config, l->accelerator);
		control_respond_error(l->request, ERR_NOT_FOUND, text);
		free(text);
		end(l);
		return;
	}
	l->leases = (struct list_leases){
	    .q.done = on_leases, .only_active = true, .accelerator = l->accelerator};
	if (!err)
		err = store_list_leases(l->daemon->store, &l->leases);
	if (err) {
		control_respond_error(l->request, err, NULL);
		end(l);
	}
}

void control_on_tokens(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct listing *l = xcalloc(1, sizeof(*l));
	char text[128] = "";
	int err;

	l->request = r;
	l->daemon = c->daemon;
	l->kind = http_query_get(r, "kind", text, sizeof(text)) &&
			  str_eq(text, token_kind_name(TOKEN_API))
		      ? TOKEN_API
		      : TOKEN_RUNNER;
	err = http_query_nth(r, "accelerator", 0, text, sizeof(text));
	if (!err)
		l->accelerator = xstrdup(text);
	if (err == ERR_INVALID) { /* without it, all would be listed */
		control_respond_error(r, err, "no accelerator has so long a name");
		end(l);
		return;
	}
	l->tokens = (struct list_tokens){.q.done = on_tokens, .only_valid = true};
	err = store_list_tokens(c->daemon->store, &l->tokens);
	if (err) {
		control_respond_error(r, err, NULL);
		end(l);
	}
}
