/* outpostctl runner, token and identities: vendors' credentials, and the recorded ids of the repositories that
 * report. The answer to a command about tokens waits for its effect: a token that was printed is valid, one that
 * was revoked is not. */

#include "daemon/control.h"
#include "daemon/wire.h"
#include "model/runner_protocol.h"
#include "runners/credentials.h"
#include "store/credentials.h"
#include "store/leases.h"
#include "views/record_json.h"

struct token_request {
	struct control_request base;
	enum token_kind kind;
	const char *accelerator, *name; /* name: the machine's; "" for an API token */
	int64_t id;                     /* revoke: this token; 0: all */
	char *listed_accelerator;       /* list: only this one's; NULL: all */
	struct add_token add;
	struct revoke_token revoke;
	struct list_tokens list;
	struct list_leases leases;
	struct credentials_wait wait;
	char text[CREDENTIAL_TEXT_BYTES];
};

static void release_token_request(struct control_request *base)
{
	struct token_request *t = CONTAINER_OF(base, struct token_request, base);

	explicit_bzero(t->text, sizeof(t->text));
	list_tokens_release(&t->list);
	list_leases_release(&t->leases);
	free(t->listed_accelerator);
}

/* Reads the body of add and revoke. */
static int read_token_request(struct token_request *t)
{
	const char *name = json_get_str(t->base.body, "name");

	t->base.release = release_token_request;
	t->kind = str_eq(json_get_str(t->base.body, "kind"), token_kind_name(TOKEN_API)) ? TOKEN_API : TOKEN_RUNNER;
	t->accelerator = json_get_str(t->base.body, "accelerator");
	t->name = name && t->kind == TOKEN_RUNNER ? name : "";
	t->id = json_get_int(t->base.body, "id", 0);
	if (!t->accelerator || !*t->accelerator)
		return error_set(&t->base.why, ERR_INVALID, "accelerator is missing");
	size_t n = strlen(t->name);
	if (t->kind == TOKEN_RUNNER &&
	    (n == 0 || n > RUNNER_NAME_MAX_BYTES ||
		strspn(t->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != n))
		return error_set(&t->base.why, ERR_INVALID, "a machine's name is 1 to %d letters, digits, -, . and _",
		    (int)RUNNER_NAME_MAX_BYTES);
	return 0;
}

/* Whose token it is: "ascend-npu", or "npu-1 of ascend-npu". free() */
static char *describe_holder(const struct token_request *t)
{
	return t->kind == TOKEN_API ? xstrdup(t->accelerator) : xasprintf("%s of %s", t->name, t->accelerator);
}

static bool is_token_of(const struct token_row *row, const struct token_request *t)
{
	return row->kind == t->kind && str_eq(row->accelerator, t->accelerator) && str_eq(row->name, t->name);
}

/* ---- add ---- */

/* Also answers when w->err says that the token is not known yet: it is in the store, and its text
 * can be shown only here. */
static void on_added_token_known(struct credentials_wait *w)
{
	struct token_request *t = CONTAINER_OF(w, struct token_request, wait);
	const struct accelerator *a = config_accelerator(t->base.daemon->config, t->accelerator);
	bool has_pull_runner = false;

	for (size_t i = 0; a && i < a->n_runners; i++)
		has_pull_runner |= a->runners[i].kind == RUNNER_PULL;
	control_answer(&t->base, json_pack("{s:I, s:s, s:b}", "id", (json_int_t)t->add.id, "token", t->text,
				     "has_pull_runner", has_pull_runner));
}

/* Refuses one token too many, and names the oldest for the command that revokes it. */
static void on_valid_tokens_listed(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	char *holder = describe_holder(t), *text;
	int64_t oldest = 0;

	for (size_t i = 0; i < t->list.n && !oldest; i++)
		if (is_token_of(&t->list.list[i], t))
			oldest = t->list.list[i].id;
	if (t->kind == TOKEN_API)
		text = xasprintf("token revoke %s --id %lld", t->accelerator, (long long)oldest);
	else
		text = xasprintf(
		    "runner revoke %s --accelerator %s --id %lld", t->name, t->accelerator, (long long)oldest);
	error_set(&t->base.why, ERR_EXISTS, "%s has %d valid tokens already; revoke one first: outpostctl %s", holder,
	    (int)TOKENS_VALID_MAX, text);
	FREE_ALL(holder, text);
	(void)control_goes_on(&t->base, ERR_EXISTS, t->base.why.text);
}

static void on_token_added(struct store_op *op)
{
	struct token_request *t = CONTAINER_OF(op, struct token_request, add.op);

	if (op->err == ERR_EXISTS) {
		t->list = (struct list_tokens){.q.done = on_valid_tokens_listed, .only_valid = true};
		(void)control_goes_on(&t->base, store_list_tokens(t->base.daemon->store, &t->list), NULL);
		return;
	}
	if (!control_goes_on(&t->base, op->err, op->why.text))
		return;
	log_event(LOG_INFO, "token_added", LOG_I("token", t->add.id), LOG_S("kind", token_kind_name(t->kind)),
	    LOG_S("accelerator", t->accelerator), LOG_S("name", t->name));
	t->wait.done = on_added_token_known;
	credentials_await(runners_credentials(t->base.daemon->runners), &t->wait);
}

static int begin_token_add(struct control_request *base)
{
	struct token_request *t = CONTAINER_OF(base, struct token_request, base);
	int rc = read_token_request(t);

	if (rc)
		return rc;
	if (!config_accelerator(base->daemon->config, t->accelerator))
		return control_unknown_accelerator(base, t->accelerator);
	credential_make(t->kind, t->text);
	t->add = (struct add_token){
	    .op.done = on_token_added,
	    .kind = t->kind,
	    .accelerator = t->accelerator,
	    .name = t->name,
	    .now_ms = clock_wall_ms(),
	};
	credential_hash(t->text, t->add.hash);
	return store_add_token(base->daemon->store, &t->add);
}

/* ---- revoke ---- */

static void on_revoked_token_known(struct credentials_wait *w)
{
	struct token_request *t = CONTAINER_OF(w, struct token_request, wait);

	if (control_goes_on(&t->base, w->err ? ERR_IO : 0,
		"revoked in the database, but the service could not read its tokens again; it keeps trying"))
		control_answer(&t->base, json_pack("{s:i}", "revoked", t->revoke.n_revoked));
}

static void on_token_revoked(struct store_op *op)
{
	struct token_request *t = CONTAINER_OF(op, struct token_request, revoke.op);

	if (!control_goes_on(&t->base, op->err, op->why.text))
		return;
	log_event(LOG_INFO, "token_revoked", LOG_I("n", t->revoke.n_revoked), LOG_I("token", t->id),
	    LOG_S("kind", token_kind_name(t->kind)), LOG_S("accelerator", t->accelerator), LOG_S("name", t->name));
	t->wait.done = on_revoked_token_known;
	credentials_await(runners_credentials(t->base.daemon->runners), &t->wait);
}

/* Checks that the token is the named holder's: the id alone could revoke another's. */
static void on_tokens_listed_to_revoke(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	bool is_found = false;
	char *holder, number[24] = "";
	int err = error_set(&t->base.why, q->err, "%s", q->why.text);

	for (size_t i = 0; i < t->list.n; i++)
		is_found |= (!t->id || t->list.list[i].id == t->id) && is_token_of(&t->list.list[i], t);
	if (!err && !is_found) {
		holder = describe_holder(t);
		if (t->id)
			snprintf(number, sizeof(number), " %lld", (long long)t->id);
		err = error_set(&t->base.why, ERR_NOT_FOUND, "%s has no valid token%s", holder, number);
		free(holder);
	}
	t->revoke = (struct revoke_token){
	    .op.done = on_token_revoked,
	    .id = t->id,
	    .kind = t->kind,
	    .accelerator = t->accelerator,
	    .name = t->name,
	    .now_ms = clock_wall_ms(),
	};
	if (!err)
		err = store_revoke_token(t->base.daemon->store, &t->revoke);
	(void)control_goes_on(&t->base, err, t->base.why.text);
}

static int begin_token_revoke(struct control_request *base)
{
	struct token_request *t = CONTAINER_OF(base, struct token_request, base);
	int rc = read_token_request(t);

	if (rc)
		return rc;
	t->list = (struct list_tokens){.q.done = on_tokens_listed_to_revoke, .only_valid = true};
	return store_list_tokens(base->daemon->store, &t->list);
}

/* ---- list: the valid tokens, their last use, and the jobs of their machines ---- */

static json_t *token_json(const struct token_request *t, const struct token_row *row)
{
	const struct daemon *d = t->base.daemon;
	const char *address = row->last_address;
	int64_t used_ms = row->last_used_ms;
	json_t *v, *leases = json_array();

	/* A use that the store has not recorded yet. */
	(void)credentials_last_use(runners_credentials(d->runners), row->id, &used_ms, &address);
	v = json_pack("{s:I, s:s, s:o, s:b, s:o, s:o, s:o}", "id", (json_int_t)row->id, "kind",
	    token_kind_name(row->kind), "accelerator", json_foreign_text(row->accelerator), "registered",
	    config_accelerator(d->config, row->accelerator) != NULL, "created", json_time(row->created_ms), "last_used",
	    json_time(used_ms), "last_address", json_foreign_text(address));
	for (size_t i = 0; i < t->leases.n; i++) {
		const struct lease_row *lease = &t->leases.list[i];

		if (str_eq(lease->accelerator, row->accelerator) && str_eq(lease->machine, row->name))
			json_array_append_new(leases, record_json(&lease_row_record, lease));
	}
	if (row->kind == TOKEN_RUNNER) {
		json_set_str(v, "name", row->name);
		json_object_set(v, "leases", leases);
	}
	json_decref(leases);
	return v;
}

static void on_leases_listed(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, leases.q);

	if (!control_goes_on(&t->base, q->err, q->why.text))
		return;
	json_t *list = json_array();
	for (size_t i = 0; i < t->list.n; i++) {
		const struct token_row *row = &t->list.list[i];

		if (row->kind == t->kind && (!t->listed_accelerator || str_eq(t->listed_accelerator, row->accelerator)))
			json_array_append_new(list, token_json(t, row));
	}
	control_answer(&t->base, json_pack("{s:o}", "tokens", list));
}

static void on_tokens_listed(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	const char *name = t->listed_accelerator;
	/* An accelerator that left the registry is known as long as it has tokens, which are
	 * refused but can be revoked. */
	bool is_known = !name || config_accelerator(t->base.daemon->config, name);
	int err = error_set(&t->base.why, q->err, "%s", q->why.text);

	for (size_t i = 0; i < t->list.n && !is_known; i++)
		is_known = str_eq(t->list.list[i].accelerator, name);
	if (!err && !is_known)
		err = control_unknown_accelerator(&t->base, name);
	t->leases = (struct list_leases){.q.done = on_leases_listed, .only_active = true, .accelerator = name};
	if (!err)
		err = store_list_leases(t->base.daemon->store, &t->leases);
	(void)control_goes_on(&t->base, err, t->base.why.text);
}

static int begin_token_list(struct control_request *base)
{
	struct token_request *t = CONTAINER_OF(base, struct token_request, base);
	char text[128] = "";

	base->release = release_token_request;
	t->kind = http_query_get(base->http, "kind", text, sizeof(text)) && str_eq(text, token_kind_name(TOKEN_API))
		      ? TOKEN_API
		      : TOKEN_RUNNER;
	int rc = http_query_nth(base->http, "accelerator", 0, text, sizeof(text));
	/* Ignoring it would list the tokens of all accelerators. */
	if (rc == ERR_INVALID)
		return error_set(&base->why, rc, "the accelerator's name is too long");
	if (!rc)
		t->listed_accelerator = xstrdup(text);
	t->list = (struct list_tokens){.q.done = on_tokens_listed, .only_valid = true};
	return store_list_tokens(base->daemon->store, &t->list);
}

/* ---- identities ---- */

struct identity_request {
	struct control_request base;
	const char *repository;
	struct list_identities list;
	struct forget_identity forget;
};

static json_t *id_json(int64_t id) { return id ? json_integer(id) : json_null(); }

json_t *identities_json(const struct list_identities *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct identity_row *row = &l->list[i];
		json_t *refused = json_null();

		if (row->refused_ms)
			refused = json_pack("{s:o, s:o, s:o}", "repository_id", id_json(row->refused.repository_id),
			    "repository_owner_id", id_json(row->refused.owner_id), "at", json_time(row->refused_ms));
		json_array_append_new(
		    list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "repository", json_foreign_text(row->repository),
			      "repository_id", id_json(row->recorded.repository_id), "repository_owner_id",
			      id_json(row->recorded.owner_id), "recorded_at", json_time(row->recorded_ms), "issuer",
			      json_foreign_text(row->issuer), "refused", refused));
	}
	return list;
}

static void on_identities_listed(struct store_query *q)
{
	struct identity_request *i = CONTAINER_OF(q, struct identity_request, list.q);
	json_t *list = identities_json(&i->list);

	list_identities_release(&i->list);
	control_answer_list(&i->base, q, "identities", list);
}

static int begin_identities(struct control_request *base)
{
	struct identity_request *i = CONTAINER_OF(base, struct identity_request, base);

	i->list.q.done = on_identities_listed;
	return store_list_identities(base->daemon->store, &i->list);
}

static void on_identity_forgotten(struct store_op *op)
{
	struct identity_request *i = CONTAINER_OF(op, struct identity_request, forget.op);

	if (!control_goes_on(
		&i->base, op->err, op->err == ERR_NOT_FOUND ? "no ids of that repository are on record" : op->why.text))
		return;
	log_event(LOG_INFO, "identity_forgotten", LOG_S("repository", i->repository));
	control_answer(&i->base, json_pack("{s:s}", "repository", i->repository));
}

static int begin_identity_forget(struct control_request *base)
{
	struct identity_request *i = CONTAINER_OF(base, struct identity_request, base);

	i->repository = json_get_str(base->body, "repository");
	if (!i->repository)
		return error_set(&base->why, ERR_INVALID, "repository is missing");
	i->forget = (struct forget_identity){.op.done = on_identity_forgotten, .repository = i->repository};
	return store_forget_identity(base->daemon->store, &i->forget);
}

const struct control_route CONTROL_CREDENTIALS[] = {
    {"GET", "/control/tokens", sizeof(struct token_request), begin_token_list},
    {"POST", "/control/tokens", sizeof(struct token_request), begin_token_add},
    {"POST", "/control/tokens/revoke", sizeof(struct token_request), begin_token_revoke},
    {"GET", "/control/identities", sizeof(struct identity_request), begin_identities},
    {"POST", "/control/identities/forget", sizeof(struct identity_request), begin_identity_forget},
    {.method = NULL},
};
