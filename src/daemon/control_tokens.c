/* outpostctl runner add, revoke and token issue, revoke: vendors' credentials. A command is done
 * when its effect is: a token that was printed is good, one that was revoked is not. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "daemon/control_tokens.h"
#include "model/runner_protocol.h"

struct token_request {
	struct http_request *request;
	struct daemon *daemon;
	enum token_kind kind;
	char *accelerator, *name; /* name: the machine's; "" for an API token */
	int64_t id;               /* revoke: this one; 0: all */
	struct add_token add;
	struct revoke_token revoke;
	struct list_tokens list;
	struct credentials_wait wait;
	char text[CREDENTIAL_TEXT_BYTES];
};

static void token_request_free(struct token_request *t)
{
	explicit_bzero(t->text, sizeof(t->text));
	list_tokens_release(&t->list);
	free(t->accelerator);
	free(t->name);
	free(t);
}

static void fail(struct token_request *t, int err, char *text)
{
	control_respond_error(t->request, err, text);
	free(text);
	token_request_free(t);
}

/* ---- what is asked ---- */

static char *describe(const struct token_request *t)
{
	return t->kind == TOKEN_API ? xstrdup(t->accelerator)
				    : xasprintf("%s of %s", t->name, t->accelerator);
}

static bool is_machine_name(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= RUNNER_NAME_MAX_BYTES &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == n;
}

static int read_asked(struct token_request *t, const json_t *asked, char **ret_why)
{
	const char *kind = json_get_str(asked, "kind"), *name = json_get_str(asked, "name"),
		   *accelerator = json_get_str(asked, "accelerator");

	t->kind = str_eq(kind, token_kind_name(TOKEN_API)) ? TOKEN_API : TOKEN_RUNNER;
	t->accelerator = xstrdup(accelerator ? accelerator : "");
	t->name = xstrdup(name && t->kind == TOKEN_RUNNER ? name : "");
	t->id = json_get_int(asked, "id", 0);
	if (!*t->accelerator) {
		*ret_why = xstrdup("an accelerator must be named");
		return ERR_INVALID;
	}
	if (t->kind == TOKEN_RUNNER && !is_machine_name(t->name)) {
		*ret_why = xasprintf("a machine's name is 1 to %d letters, digits, -, . and _",
		    (int)RUNNER_NAME_MAX_BYTES);
		return ERR_INVALID;
	}
	return 0;
}

/* NULL: answered. */
static struct token_request *begin(struct http_request *r, struct control *c)
{
	struct token_request *t;
	const char *body;
	char *why = NULL;
	json_t *asked;
	size_t n;
	int err;

	body = http_body(r, &n);
	if (json_parse(body, n, &asked, NULL)) {
		control_respond_error(r, ERR_INVALID, "the body is not JSON");
		return NULL;
	}
	t = xcalloc(1, sizeof(*t));
	t->request = r;
	t->daemon = c->daemon;
	err = read_asked(t, asked, &why);
	json_decref(asked);
	if (!err)
		return t;
	fail(t, err, why);
	return NULL;
}

/* ---- add, issue ---- */

static bool has_pull_runner(const struct accelerator *a)
{
	for (size_t i = 0; i < a->n_runners; i++)
		if (a->runners[i].kind == RUNNER_PULL)
			return true;
	return false;
}

static void on_added_is_known(struct credentials_wait *w)
{
	struct token_request *t = CONTAINER_OF(w, struct token_request, wait);
	const struct accelerator *a = config_accelerator(t->daemon->config, t->accelerator);
	json_t *v = json_object();

	/* Also when it is not known yet: it is in the store, and only here can it be shown. */
	json_set_int(v, "id", t->add.id);
	json_set_str(v, "token", t->text);
	json_object_set_new(v, "has_pull_runner", json_boolean(a && has_pull_runner(a)));
	control_respond(t->request, 200, v);
	token_request_free(t);
}

static void on_valid_listed(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	struct buf text = BUF_INIT(4096);
	char *whose = describe(t);
	int64_t oldest = 0;

	for (size_t i = 0; i < t->list.n && !oldest; i++)
		if (control_token_is_of(&t->list.list[i], t->kind, t->accelerator, t->name))
			oldest = t->list.list[i].id;
	buf_appendf(&text, "%s has %d valid tokens already; revoke one first: outpostctl ", whose,
	    (int)TOKENS_VALID_MAX);
	if (t->kind == TOKEN_API)
		buf_appendf(&text, "token revoke %s --id %lld", t->accelerator, (long long)oldest);
	else
		buf_appendf(&text, "runner revoke %s --accelerator %s --id %lld", t->name,
		    t->accelerator, (long long)oldest);
	free(whose);
	fail(t, ERR_EXISTS, buf_take(&text));
}

static void on_added(struct store_op *op)
{
	struct token_request *t = CONTAINER_OF(op, struct token_request, add.op);

	if (op->err == ERR_EXISTS) {
		t->list = (struct list_tokens){.q.done = on_valid_listed, .only_valid = true};
		if (store_list_tokens(t->daemon->store, &t->list))
			fail(t, ERR_BUSY, NULL);
		return;
	}
	if (op->err) {
		fail(t, op->err, xstrdup(op->why.text));
		return;
	}
	log_event(LOG_INFO, "token_added", LOG_I("token", t->add.id),
	    LOG_S("kind", token_kind_name(t->kind)), LOG_S("accelerator", t->accelerator),
	    LOG_S("name", t->name));
	t->wait.done = on_added_is_known;
	credentials_await(runners_credentials(t->daemon->runners), &t->wait);
}

void control_on_token_add(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct token_request *t = begin(r, c);
	int err;

	if (!t)
		return;
	if (!config_accelerator(c->daemon->config, t->accelerator)) {
		fail(t, ERR_NOT_FOUND,
		    control_unknown_accelerator(c->daemon->config, t->accelerator));
		return;
	}
	credential_make(t->kind, t->text);
	t->add = (struct add_token){
	    .op.done = on_added,
	    .kind = t->kind,
	    .accelerator = t->accelerator,
	    .name = t->name,
	    .now_ms = clock_wall_ms(),
	};
	credential_hash(t->text, t->add.hash);
	err = store_add_token(c->daemon->store, &t->add);
	if (err)
		fail(t, err, NULL);
}

/* ---- revoke ---- */

static void on_revoked_is_known(struct credentials_wait *w)
{
	struct token_request *t = CONTAINER_OF(w, struct token_request, wait);

	if (w->err)
		fail(t, ERR_IO,
		    xstrdup("revoked in the database, but the service could not read its tokens "
			    "again; it tries on"));
	else {
		control_respond(
		    t->request, 200, json_pack("{s:i}", "revoked", t->revoke.n_revoked));
		token_request_free(t);
	}
}

static void on_revoked(struct store_op *op)
{
	struct token_request *t = CONTAINER_OF(op, struct token_request, revoke.op);

	if (op->err) {
		fail(t, op->err, xstrdup(op->why.text));
		return;
	}
	log_event(LOG_INFO, "token_revoked", LOG_I("n", t->revoke.n_revoked), LOG_I("token", t->id),
	    LOG_S("kind", token_kind_name(t->kind)), LOG_S("accelerator", t->accelerator),
	    LOG_S("name", t->name));
	t->wait.done = on_revoked_is_known;
	credentials_await(runners_credentials(t->daemon->runners), &t->wait);
}

static char *nothing_to_revoke(const struct token_request *t)
{
	char *whose = describe(t);
	char *text = t->id ? xasprintf("%s has no valid token %lld", whose, (long long)t->id)
			   : xasprintf("%s has no valid token", whose);

	free(whose);
	return text;
}

/* An id alone would revoke another's. */
static void on_listed_to_revoke(struct store_query *q)
{
	struct token_request *t = CONTAINER_OF(q, struct token_request, list.q);
	bool is_found = false;
	int err = q->err;

	for (size_t i = 0; i < t->list.n; i++)
		is_found |= (!t->id || t->list.list[i].id == t->id) &&
			    control_token_is_of(&t->list.list[i], t->kind, t->accelerator, t->name);
	if (!err && !is_found) {
		fail(t, ERR_NOT_FOUND, nothing_to_revoke(t));
		return;
	}
	t->revoke = (struct revoke_token){
	    .op.done = on_revoked,
	    .id = t->id,
	    .kind = t->kind,
	    .accelerator = t->accelerator,
	    .name = t->name,
	    .now_ms = clock_wall_ms(),
	};
	if (!err)
		err = store_revoke_token(t->daemon->store, &t->revoke);
	if (err)
		fail(t, err, NULL);
}

void control_on_token_revoke(struct http_request *r, void *owner)
{
	struct token_request *t = begin(r, owner);
	int err;

	if (!t)
		return;
	t->list = (struct list_tokens){.q.done = on_listed_to_revoke, .only_valid = true};
	err = store_list_tokens(t->daemon->store, &t->list);
	if (err)
		fail(t, err, NULL);
}
