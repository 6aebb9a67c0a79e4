/* outpostctl runner, token and identities: vendors' credentials, and the recorded ids of the repositories that
 * report. The answer to a command about tokens waits for its effect: a token that was printed is valid, one that
 * was revoked is not. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/control.h"
#include "daemon/wire.h"
#include "model/runner_protocol.h"
#include "runners/credentials.h"
#include "store/credentials.h"
#include "store/leases.h"

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
	size_t n;

	t->base.release = release_token_request;
	t->kind = str_eq(json_get_str(t->base.body, "kind"), token_kind_name(TOKEN_API))
		      ? TOKEN_API
		      : TOKEN_RUNNER;
	t->accelerator = json_get_str(t->base.body, "accelerator");
	t->name = name && t->kind == TOKEN_RUNNER ? name : "";
	t->id = json_get_int(t->base.body, "id", 0);
	if (!t->accelerator || !*t->accelerator)
		return error_set(&t->base.why, ERR_INVALID, "accelerator is missing");
	n = strlen(t->name);
	if (t->kind == TOKEN_RUNNER &&
	    (n == 0 || n > RUNNER_NAME_MAX_BYTES ||
		strspn(t->name,
		    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != n))
		return error_set(&t->base.why, ERR_INVALID,
		    "a machine's name is 1 to %d letters, digits, -, . and _",
		    (int)RUNNER_NAME_MAX_BYTES);
	return 0;
}

/* Whose token it is: "ascend-npu", or "npu-1 of ascend-npu". free() */
static char *describe_holder(const struct token_request *t)
{
	return t->kind == TOKEN_API ? xstrdup(t->accelerator)
				    : xasprintf("%s of %s", t->name, t->accelerator);
}

static bool is_token_of(const struct token_row *row, const struct token_request *t)
{
	return row->kind == t->kind && str_eq(row->accelerator, t->accelerator) &&
	       str_eq(row->name, t->name);
}

/* ---- add ---- */

/* Also answers when w->err says that the token is not known yet: it is in the store, and its text
 * can be shown only here. */
static void on_added_token_known(struct credentials_wait *w)
{
	struct token_request *t = CONTAINER_OF(w, struct token_request, wait);
	const struct accelerator *a = config_accelerator(t->base.daemon->config, t->accelerator);
	bool has_pull_runner = false;
	json_t *v = json_object();

	for (size_t i = 0; a && i < a->n_runners; i++)
		has_pull_runner |= a->runners[i].kind == RUNNER_PULL;
	json_set_int(v, "id", t->add.id);
	json_set_str(v, "token", t->text);
	json_object_set_new(v, "has_pull_runner", json_boolean(has_pull_runner));
	control_answer(&t->base, v);
}

/* Refuses one token too many, and names the oldest for the command that revokes it. */
static void on_valid_tokens_listed(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	struct buf text = BUF_INIT(4096);
	char *holder = describe_holder(t);
	int64_t oldest = 0;

	for (size_t i = 0; i < t->list.n && !oldest; i++)
		if (is_token_of(&t->list.list[i], t))
			oldest = t->list.list[i].id;
	buf_appendf(&text, "%s has %d valid tokens already; revoke one first: outpostctl ", holder,
	    (int)TOKENS_VALID_MAX);
	if (t->kind == TOKEN_API)
		buf_appendf(&text, "token revoke %s --id %lld", t->accelerator, (long long)oldest);
	else
		buf_appendf(&text, "runner revoke %s --accelerator %s --id %lld", t->name,
		    t->accelerator, (long long)oldest);
	control_fail(&t->base, ERR_EXISTS, buf_str(&text));
	buf_release(&text);
	free(holder);
}

static void on_token_added(struct store_op *op)
{
	struct token_request *t = CONTAINER_OF(op, struct token_request, add.op);

	if (op->err == ERR_EXISTS) {
		t->list =
		    (struct list_tokens){.q.done = on_valid_tokens_listed, .only_valid = true};
		if (store_list_tokens(t->base.daemon->store, &t->list))
			control_fail(&t->base, ERR_BUSY, NULL);
		return;
	}
	if (op->err) {
		control_fail(&t->base, op->err, op->why.text);
		return;
	}
	log_event(LOG_INFO, "token_added", LOG_I("token", t->add.id),
	    LOG_S("kind", token_kind_name(t->kind)), LOG_S("accelerator", t->accelerator),
	    LOG_S("name", t->name));
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

	if (w->err)
		control_fail(&t->base, ERR_IO,
		    "revoked in the database, but the service could not read its tokens again; it "
		    "keeps trying");
	else
		control_answer(&t->base, json_pack("{s:i}", "revoked", t->revoke.n_revoked));
}

static void on_token_revoked(struct store_op *op)
{
	struct token_request *t = CONTAINER_OF(op, struct token_request, revoke.op);

	if (op->err) {
		control_fail(&t->base, op->err, op->why.text);
		return;
	}
	log_event(LOG_INFO, "token_revoked", LOG_I("n", t->revoke.n_revoked), LOG_I("token", t->id),
	    LOG_S("kind", token_kind_name(t->kind)), LOG_S("accelerator", t->accelerator),
	    LOG_S("name", t->name));
	t->wait.done = on_revoked_token_known;
	credentials_await(runners_credentials(t->base.daemon->runners), &t->wait);
}

/* Checks that the token is the named holder's: the id alone could revoke another's. */
static void on_tokens_listed_to_revoke(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	bool is_found = false;
	char *holder;
	int err = q->err;

	for (size_t i = 0; i < t->list.n; i++)
		is_found |=
		    (!t->id || t->list.list[i].id == t->id) && is_token_of(&t->list.list[i], t);
	if (!err && !is_found) {
		holder = describe_holder(t);
		if (t->id)
			err = error_set(&t->base.why, ERR_NOT_FOUND, "%s has no valid token %lld",
			    holder, (long long)t->id);
		else
			err =
			    error_set(&t->base.why, ERR_NOT_FOUND, "%s has no valid token", holder);
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
	if (err)
		control_fail(&t->base, err, t->base.why.text);
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
	json_t *v = json_object(), *leases = json_array();

	/* A use that the store has not recorded yet. */
	(void)credentials_last_use(runners_credentials(d->runners), row->id, &used_ms, &address);
	json_set_int(v, "id", row->id);
	json_set_str(v, "kind", token_kind_name(row->kind));
	json_set_str(v, "accelerator", row->accelerator);
	json_object_set_new(
	    v, "registered", json_boolean(config_accelerator(d->config, row->accelerator) != NULL));
	json_set_time(v, "created", row->created_ms);
	json_set_time(v, "last_used", used_ms);
	json_set_str(v, "last_address", address);
	for (size_t i = 0; i < t->leases.n; i++) {
		const struct lease_row *lease = &t->leases.list[i];
		json_t *o;

		if (!str_eq(lease->accelerator, row->accelerator) ||
		    !str_eq(lease->machine, row->name))
			continue;
		o = json_object();
		json_set_str(o, "id", lease->id);
		json_set_str(o, "dispatch", lease->dispatch_id);
		json_set_str(o, "runner", lease->runner);
		json_set_int(o, "attempt", lease->attempt);
		json_set_int(o, "job", lease->job_id);
		json_set_int(o, "pr", lease->number);
		json_set_str(o, "head_sha", lease->head_sha);
		json_set_time(o, "since", lease->granted_ms);
		json_array_append_new(leases, o);
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
	json_t *list;

	if (q->err) {
		control_fail(&t->base, q->err, q->why.text);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < t->list.n; i++) {
		const struct token_row *row = &t->list.list[i];

		if (row->kind == t->kind &&
		    (!t->listed_accelerator || str_eq(t->listed_accelerator, row->accelerator)))
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
	int err = q->err;

	for (size_t i = 0; i < t->list.n && !is_known; i++)
		is_known = str_eq(t->list.list[i].accelerator, name);
	if (!err && !is_known)
		err = control_unknown_accelerator(&t->base, name);
	t->leases = (struct list_leases){
	    .q.done = on_leases_listed, .only_active = true, .accelerator = name};
	if (!err)
		err = store_list_leases(t->base.daemon->store, &t->leases);
	if (err)
		control_fail(&t->base, err, t->base.why.text);
}

static int begin_token_list(struct control_request *base)
{
	struct token_request *t = CONTAINER_OF(base, struct token_request, base);
	char text[128] = "";
	int rc;

	base->release = release_token_request;
	t->kind = http_query_get(base->http, "kind", text, sizeof(text)) &&
			  str_eq(text, token_kind_name(TOKEN_API))
		      ? TOKEN_API
		      : TOKEN_RUNNER;
	rc = http_query_nth(base->http, "accelerator", 0, text, sizeof(text));
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

static void set_id(json_t *v, const char *key, int64_t id)
{
	json_object_set_new(v, key, id ? json_integer(id) : json_null());
}

json_t *identities_json(const struct list_identities *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct identity_row *row = &l->list[i];
		json_t *v = json_object(), *refused = json_null();

		json_set_str(v, "repository", row->repository);
		set_id(v, "repository_id", row->recorded.repository_id);
		set_id(v, "repository_owner_id", row->recorded.owner_id);
		json_set_time(v, "recorded_at", row->recorded_ms);
		json_set_str(v, "issuer", row->issuer);
		if (row->refused_ms) {
			refused = json_object();
			set_id(refused, "repository_id", row->refused.repository_id);
			set_id(refused, "repository_owner_id", row->refused.owner_id);
			json_set_time(refused, "at", row->refused_ms);
		}
		json_object_set_new(v, "refused", refused);
		json_array_append_new(list, v);
	}
	return list;
}

static void on_identities_listed(struct store_query *q)
{
	struct identity_request *i = CONTAINER_OF(q, struct identity_request, list.q);
	json_t *list = identities_json(&i->list);

	list_identities_release(&i->list);
	if (q->err)
		control_fail(&i->base, q->err, q->why.text);
	else
		control_answer(&i->base, json_pack("{s:O}", "identities", list));
	json_decref(list);
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

	if (op->err) {
		control_fail(&i->base, op->err,
		    op->err == ERR_NOT_FOUND ? "no ids of that repository are on record"
					     : op->why.text);
		return;
	}
	log_event(LOG_INFO, "identity_forgotten", LOG_S("repository", i->repository));
	control_answer(&i->base, json_pack("{s:s}", "repository", i->repository));
}

static int begin_identity_forget(struct control_request *base)
{
	struct identity_request *i = CONTAINER_OF(base, struct identity_request, base);

	i->repository = json_get_str(base->body, "repository");
	if (!i->repository)
		return error_set(&base->why, ERR_INVALID, "repository is missing");
	i->forget =
	    (struct forget_identity){.op.done = on_identity_forgotten, .repository = i->repository};
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
