#include "runners/oidc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/jwt.h"
#include "base/str.h"
#include "base/strv.h"

enum { CLAIM_MAX_BYTES = 512 };

void oidc_caller_release(struct oidc_caller *c)
{
	free(c->repository);
	free(c->workflow_ref);
	*c = (struct oidc_caller){0};
}

static int find_issuer(
    const struct config *c, const json_t *claims, const struct oidc_issuer **ret, struct error *e)
{
	const char *name = json_get_str(claims, "iss");

	for (size_t i = 0; name && i < c->n_oidc_issuers; i++)
		if (strcmp(c->oidc_issuers[i].issuer, name) == 0) {
			*ret = &c->oidc_issuers[i];
			return 0;
		}
	return error_set(e, ERR_AUTH, "the issuer \"%.100s\" is not configured", name ? name : "");
}

static int check_audience(const struct config *c, const json_t *claims, struct error *e)
{
	const json_t *audience = json_object_get(claims, "aud"), *one;
	size_t i;

	if (str_eq(json_string_value(audience), c->oidc_audience))
		return 0;
	json_array_foreach(
	    audience, i, one) if (str_eq(json_string_value(one), c->oidc_audience)) return 0;
	return error_set(e, ERR_AUTH, "the audience is another");
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

/* A claim as a configuration file would write it; false when it is no scalar or too long. */
static bool claim_text(const json_t *claim, char out[CLAIM_MAX_BYTES])
{
	int n = CLAIM_MAX_BYTES;

	if (json_is_string(claim))
		n = snprintf(out, CLAIM_MAX_BYTES, "%s", json_string_value(claim));
	else if (json_is_integer(claim))
		n = snprintf(
		    out, CLAIM_MAX_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(claim));
	else if (json_is_boolean(claim))
		n = snprintf(out, CLAIM_MAX_BYTES, "%s", json_is_true(claim) ? "true" : "false");
	return n < CLAIM_MAX_BYTES;
}

static int check_required(const struct oidc_mapping *m, const json_t *claims, struct error *e)
{
	for (size_t i = 0; i < m->n_claims; i++) {
		const struct oidc_claim *wanted = &m->claims[i];
		char text[CLAIM_MAX_BYTES];

		if (!claim_text(json_object_get(claims, wanted->name), text) ||
		    !strv_contains((const char *const *)wanted->values, text))
			return error_set(e, ERR_DENIED, "%s: the required claim %s does not hold",
			    m->key, wanted->name);
	}
	return 0;
}

static int map_repository(
    const struct oidc_issuer *issuer, const json_t *claims, char **ret, struct error *e)
{
	const char *organization = json_get_str(claims, "organization_id");
	const char *pipeline = json_get_str(claims, "pipeline_id");
	char key[CLAIM_MAX_BYTES];
	int n = snprintf(
	    key, sizeof key, "%s/%s", organization ? organization : "", pipeline ? pipeline : "");
	int err;

	for (size_t i = 0; n < CLAIM_MAX_BYTES && i < issuer->n_mappings; i++) {
		const struct oidc_mapping *m = &issuer->mappings[i];

		if (strcmp(m->key, key) != 0)
			continue;
		err = check_required(m, claims, e);
		if (!err)
			*ret = xstrdup(m->repository);
		return err;
	}
	return error_set(e, ERR_DENIED, "no repository is mapped to %.200s", key);
}

static int find_repository(
    const struct oidc_issuer *issuer, const json_t *claims, char **ret, struct error *e)
{
	const char *name = json_get_str(claims, "repository");

	if (issuer->n_mappings > 0)
		return map_repository(issuer, claims, ret, e);
	if (!name || !is_repository_name(name))
		return error_set(e, ERR_AUTH, "the claim repository is missing or not owner/name");
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

static int read_ids(const json_t *claims, struct repository_ids *ret, struct error *e)
{
	int err = read_id(claims, "repository_id", &ret->repository_id, e);

	return err ? err : read_id(claims, "repository_owner_id", &ret->owner_id, e);
}

/* Cheap questions first; whom it speaks for is asked only once it is known to be genuine. */
static int verify(const struct config *c, const struct jwt *token, int64_t now_wall_ms,
    oidc_find_key_fn *find_key, void *find_owner, struct oidc_caller *ret, struct error *e)
{
	struct rsa_public_key *key;
	int err;

	/* The only algorithm: a list of them is how tokens get forged. */
	if (strcmp(token->alg, "RS256") != 0)
		return error_set(e, ERR_AUTH, "the algorithm is not RS256");
	if (!token->kid)
		return error_set(e, ERR_AUTH, "no key is named");
	err = find_issuer(c, token->payload, &ret->issuer, e);
	if (!err)
		err = check_audience(c, token->payload, e);
	if (!err)
		err = check_times(token->payload, now_wall_ms, e);
	if (err)
		return err;
	key = find_key(ret->issuer->issuer, token->kid, find_owner);
	if (!key)
		return error_set(e, ERR_NOT_FOUND, "the key \"%.100s\" is unknown", token->kid);
	err = rsa_verify(key, token->signing_input, token->n_signing_input, token->signature,
	    token->n_signature);
	if (err)
		return error_set(e, ERR_AUTH, "the signature is wrong");
	err = find_repository(ret->issuer, token->payload, &ret->repository, e);
	if (!err && ret->issuer->n_mappings == 0)
		err = read_ids(token->payload, &ret->ids, e);
	if (!err)
		ret->workflow_ref =
		    xstrdup_or_null(json_get_str(token->payload, "job_workflow_ref"));
	return err;
}

int oidc_verify(const struct config *c, const char *token, int64_t now_wall_ms,
    oidc_find_key_fn *find_key, void *find_owner, struct oidc_caller *ret, struct error *e)
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
