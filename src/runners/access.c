#include "runners/access.h"

enum { CLAIM_MAX_BYTES = 512, IDS_TEXT_BYTES = 128 };

/* ---- tokens ---- */

void oidc_caller_release(struct oidc_caller *c)
{
	FREE_ALL(c->repository, c->workflow_ref);
	*c = (struct oidc_caller){0};
}

/* NumericDate (RFC 7519 section 2): seconds, fractions allowed. */
static int check_times(const json_t *claims, int64_t now_wall_ms, struct error *e)
{
	static const char *const beginnings[] = {"nbf", "iat"};
	const json_t *end = json_object_get(claims, "exp");
	double now_s = (double)now_wall_ms / 1000;

	if (!json_is_number(end))
		return error_set(e, ERR_AUTH, "exp is missing or not a number");
	if (json_number_value(end) + OIDC_LEEWAY_S <= now_s)
		return error_set(e, ERR_AUTH, "expired");
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
		const json_t *start = json_object_get(claims, beginnings[i]);

		if (start && !json_is_number(start))
			return error_set(e, ERR_AUTH, "%s is not a number", beginnings[i]);
		if (start && json_number_value(start) - OIDC_LEEWAY_S > now_s)
			return error_set(e, ERR_AUTH, "not valid yet (%s)", beginnings[i]);
	}
	return 0;
}

/* A claim as a configuration file would write it. False: it is not a scalar, or too long. */
static bool claim_text(const json_t *claim, char out[CLAIM_MAX_BYTES])
{
	int n = CLAIM_MAX_BYTES;

	if (json_is_string(claim))
		n = snprintf(out, CLAIM_MAX_BYTES, "%s", json_string_value(claim));
	else if (json_is_integer(claim))
		n = snprintf(out, CLAIM_MAX_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(claim));
	else if (json_is_boolean(claim))
		n = snprintf(out, CLAIM_MAX_BYTES, "%s", json_is_true(claim) ? "true" : "false");
	return n < CLAIM_MAX_BYTES;
}

static int find_repository(const struct oidc_issuer *issuer, const json_t *claims, char **ret, struct error *e)
{
	const char *name = json_get_str(claims, "repository");

	if (issuer->n_mappings > 0) {
		const char *organization = json_get_str(claims, "organization_id");
		const char *pipeline = json_get_str(claims, "pipeline_id");
		char key[CLAIM_MAX_BYTES];
		int n = snprintf(key, sizeof key, "%s/%s", organization ? organization : "", pipeline ? pipeline : "");
		const struct oidc_mapping *m = NULL;

		for (size_t i = 0; n < CLAIM_MAX_BYTES && !m && i < issuer->n_mappings; i++)
			if (strcmp(issuer->mappings[i].key, key) == 0)
				m = &issuer->mappings[i];
		if (!m)
			return error_set(e, ERR_DENIED, "no repository is mapped to %.200s", key);
		for (size_t i = 0; i < m->n_claims; i++) {
			const struct oidc_claim *required = &m->claims[i];
			char text[CLAIM_MAX_BYTES];

			if (!claim_text(json_object_get(claims, required->name), text) ||
			    !strv_contains((const char *const *)required->values, text))
				return error_set(
				    e, ERR_DENIED, "%s: the required claim %s does not hold", m->key, required->name);
		}
		name = m->repository;
	} else if (!name || !is_repository_name(name)) {
		return error_set(e, ERR_AUTH, "the claim repository is missing or not owner/name");
	}
	*ret = xstrdup(name);
	return 0;
}

/* GitHub writes its ids as text. */
static int read_id(const json_t *claims, const char *name, int64_t *ret, struct error *e)
{
	const json_t *claim = json_object_get(claims, name);

	*ret = json_integer_value(claim);
	if (json_is_string(claim) && parse_int64(json_string_value(claim), ret))
		*ret = 0;
	if (claim && *ret <= 0)
		return error_set(e, ERR_AUTH, "the claim %s is not a number of a repository", name);
	return 0;
}

/* Makes the cheap checks first. The caller is read only from a token that is known to be genuine. */
static int verify(const struct config *c, const struct jwt *token, int64_t now_wall_ms, oidc_find_key_fn *find_key,
    void *find_owner, struct oidc_caller *ret, struct error *e)
{
	const json_t *audience = json_object_get(token->payload, "aud"), *one;
	const char *issuer = json_get_str(token->payload, "iss");
	bool is_for_us = str_eq(json_string_value(audience), c->oidc_audience);
	size_t i;

	/* A token that may choose among algorithms can be forged, so there is only one. */
	if (strcmp(token->alg, "RS256") != 0)
		return error_set(e, ERR_AUTH, "the algorithm is not RS256");
	if (!token->kid)
		return error_set(e, ERR_AUTH, "no key is named");
	for (i = 0; i < c->n_oidc_issuers && !ret->issuer; i++)
		if (str_eq(c->oidc_issuers[i].issuer, issuer))
			ret->issuer = &c->oidc_issuers[i];
	if (!ret->issuer)
		return error_set(e, ERR_AUTH, "the issuer \"%.100s\" is not configured", issuer ? issuer : "");
	json_array_foreach(audience, i, one) { is_for_us |= str_eq(json_string_value(one), c->oidc_audience); }
	if (!is_for_us)
		return error_set(e, ERR_AUTH, "the audience is another");
	int err = check_times(token->payload, now_wall_ms, e);
	if (err)
		return err;
	struct rsa_public_key *key = find_key(ret->issuer->issuer, token->kid, find_owner);
	if (!key)
		return error_set(e, ERR_NOT_FOUND, "the key \"%.100s\" is unknown", token->kid);
	err = rsa_verify(key, token->signing_input, token->n_signing_input, token->signature, token->n_signature);
	if (err)
		return error_set(e, ERR_AUTH, "the signature is wrong");
	err = find_repository(ret->issuer, token->payload, &ret->repository, e);
	if (!err && ret->issuer->n_mappings == 0)
		err = read_id(token->payload, "repository_id", &ret->ids.repository_id, e);
	if (!err && ret->issuer->n_mappings == 0)
		err = read_id(token->payload, "repository_owner_id", &ret->ids.owner_id, e);
	if (!err)
		ret->workflow_ref = xstrdup_or_null(json_get_str(token->payload, "job_workflow_ref"));
	return err;
}

int oidc_verify(const struct config *c, const char *token, int64_t now_wall_ms, oidc_find_key_fn *find_key,
    void *find_owner, struct oidc_caller *ret, struct error *e)
{
	struct error why = {0};
	struct jwt parts;
	int err = jwt_parse(token, strlen(token), &parts, &why);

	*ret = (struct oidc_caller){0};
	if (err)
		return error_set(e, ERR_AUTH, "not a token: %s", why.text);
	err = verify(c, &parts, now_wall_ms, find_key, find_owner, ret, e);
	jwt_release(&parts);
	return err;
}

void oidc_refuse(
    struct runners *r, struct http_request *q, const struct oidc_caller *caller, int err, const struct error *e)
{
	struct refusal x = {.status = 401, .detail = "the token is not valid", .why = e->text};

	if (err == ERR_DENIED)
		x = (struct refusal){403, "the token's pipeline may not report here", e->text, NULL, 0};
	if (err == ERR_BUSY || err == ERR_CLOSING)
		answer_busy(r, q, caller->issuer->issuer, err);
	else
		answer_refused(r, q, &x);
}

/* ---- accelerators ---- */

/* True if "owner/repo/PATH@ref" names exactly `path` in `repository`. As on GitHub, the case of a repository's name
 * does not count, and that of a path does. Any ref will do, but it must be a full ref or a commit, because
 * "x.yml@evil.yml" is the name of a file too. */
static bool names_workflow(const char *workflow_ref, const char *repository, const char *path)
{
	size_t n_repository = strlen(repository), n_path = strlen(path);

	if (!workflow_ref || strncasecmp(workflow_ref, repository, n_repository) != 0 ||
	    workflow_ref[n_repository] != '/')
		return false;
	const char *rest = workflow_ref + n_repository + 1;
	return strncmp(rest, path, n_path) == 0 && rest[n_path] == '@' &&
	       (str_has_prefix(rest + n_path + 1, "refs/") || is_sha1(rest + n_path + 1));
}

static void allow_accelerator(struct access *ret, const struct accelerator *a)
{
	ret->allowed[ret->n_allowed++] = a->name;
	if (a->level == LEVEL_1)
		ret->silent[ret->n_silent++] = a->name;
}

static void access_init(struct access *ret, size_t n_max)
{
	*ret = (struct access){0};
	ret->allowed = xcalloc(n_max + 1, sizeof *ret->allowed);
	ret->silent = xcalloc(n_max + 1, sizeof *ret->silent);
	ret->refused = xcalloc(n_max + 1, sizeof *ret->refused);
}

void access_of_repository(const struct config *c, const char *repository, const char *workflow_ref, struct access *ret)
{
	access_init(ret, c->n_accelerators);
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];
		bool is_bound = false, is_allowed = false;

		for (size_t k = 0; k < a->n_runners; k++) {
			const struct runner *r = &a->runners[k];

			if ((r->kind != RUNNER_GITHUB && r->kind != RUNNER_INFRA) || !r->repository ||
			    strcasecmp(r->repository, repository) != 0)
				continue;
			ret->repository = r->repository;
			/* The configuration holds no two pins that contradict each other. */
			if (r->repository_id)
				ret->pinned.repository_id = r->repository_id;
			if (r->repository_owner_id)
				ret->pinned.owner_id = r->repository_owner_id;
			is_bound = true;
			is_allowed |= !r->workflow || names_workflow(workflow_ref, r->repository, r->workflow);
		}
		if (is_allowed)
			allow_accelerator(ret, a);
		else if (is_bound)
			ret->refused[ret->n_refused++] = a->name;
	}
}

void access_of_accelerator(const struct config *c, const char *accelerator, struct access *ret)
{
	const struct accelerator *a = config_accelerator(c, accelerator);

	access_init(ret, 1);
	if (a)
		allow_accelerator(ret, a);
}

void access_release(struct access *a)
{
	FREE_ALL(a->allowed, a->silent, a->refused);
	*a = (struct access){0};
}

bool access_is_registered(const struct access *a) { return a->n_allowed + a->n_refused > 0; }

bool access_is_silent(const struct access *a) { return a->n_allowed > 0 && a->n_silent == a->n_allowed; }

/* ---- identities ---- */

static void ids_text(struct repository_ids ids, char out[IDS_TEXT_BYTES])
{
	char repository[32] = "missing", owner[32] = "missing";

	if (ids.repository_id)
		snprintf(repository, sizeof(repository), "%lld", (long long)ids.repository_id);
	if (ids.owner_id)
		snprintf(owner, sizeof(owner), "%lld", (long long)ids.owner_id);
	snprintf(out, IDS_TEXT_BYTES, "repository_id %s, repository_owner_id %s", repository, owner);
}

static void on_identity_checked(struct store_op *store_op)
{
	struct identity_check *c = CONTAINER_OF(store_op, struct identity_check, op.op);
	const struct check_identity *op = &c->op;
	struct runners *r = c->runners;
	bool is_pin = op->outcome == IDENTITY_NOT_AS_PINNED;
	char token[IDS_TEXT_BYTES], expected[IDS_TEXT_BYTES];
	int64_t n_skipped;

	c->err = store_op->err;
	if (!c->err && op->outcome == IDENTITY_RECORDED) {
		log_event(LOG_INFO, "identity_recorded", LOG_S("repository", op->repository),
		    LOG_S("issuer", op->issuer), LOG_I("repository_id", op->token.repository_id),
		    LOG_I("repository_owner_id", op->token.owner_id));
	} else if (!c->err && op->outcome != IDENTITY_ACCEPTED) {
		r->counters.n_identity_refused++;
		ids_text(op->token, token);
		ids_text(is_pin ? op->pinned : op->recorded, expected);
		if (is_pin)
			c->err = error_set(&c->why, ERR_DENIED,
			    "the token's ids (%s) are not those that the registry pins for %s", token, op->repository);
		else
			c->err = error_set(&c->why, ERR_DENIED,
			    "the token's ids (%s) are not those on record for %s (%s): if the repository was moved or "
			    "made again on purpose, the operator accepts it with `outpostctl identities forget %s`",
			    token, op->repository, expected, op->repository);
		if (log_limit_pass(&r->identity_lines, loop_now_ms(r->loop), &n_skipped))
			log_event(LOG_WARN, "identity_refused", LOG_S("repository", op->repository),
			    LOG_S("issuer", op->issuer), LOG_S("token", token),
			    LOG_S(is_pin ? "pinned" : "recorded", expected), LOG_I("more", n_skipped));
	}
	c->done(c);
}

int identity_check_start(struct identity_check *c, const char *issuer, const char *repository,
    struct repository_ids ids, const struct access *access)
{
	c->op = (struct check_identity){
	    .op.done = on_identity_checked,
	    .issuer = issuer,
	    .repository = repository,
	    .token = ids,
	    .pinned = access->pinned,
	    .now_ms = clock_wall_ms(),
	};
	return store_check_identity(c->runners->store, &c->op);
}
