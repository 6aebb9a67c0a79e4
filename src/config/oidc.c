#include "config/main_file.h"

static field_read_fn field_repositories, field_claims;

static const struct mapping REPOSITORY = MAPPING("github.oidc.issuers.repositories",
    {"repository", field_text, REQUIRED, offsetof(struct oidc_mapping, repository), check_repository, .max = 201},
    {"required_claims", field_claims, .presence = OPTIONAL});

const struct mapping OIDC_ISSUER_MAPPING = MAPPING("github.oidc.issuers",
    {"issuer", field_text, REQUIRED, offsetof(struct oidc_issuer, issuer), check_service_url, .max = 1024},
    {"jwks_url", field_text, REQUIRED, offsetof(struct oidc_issuer, jwks_url), check_service_url, .max = 2048},
    {"repositories", field_repositories, OPTIONAL, .map = &REPOSITORY});

void oidc_issuer_release(struct oidc_issuer *i)
{
	for (size_t k = 0; k < i->n_mappings; k++) {
		struct oidc_mapping *m = &i->mappings[k];

		for (size_t n = 0; n < m->n_claims; n++) {
			free(m->claims[n].name);
			strv_free(m->claims[n].values);
		}
		FREE_ALL(m->claims, m->key, m->repository);
	}
	FREE_ALL(i->mappings, i->issuer, i->jwks_url);
}

/* required_claims: {name: [value, …]}. */
static void field_claims(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	static const struct field values = {
	    "required_claims", field_texts, REQUIRED, .check = check_line, .min = 1, .max = 1024};
	struct oidc_mapping *m = target;

	if (!expect_kind(r, f, v, NODE_MAP))
		return;
	m->claims = xcalloc(v->n, sizeof(*m->claims));
	for (size_t i = 0; i < v->n; i++) {
		struct oidc_claim *c = &m->claims[m->n_claims++];

		c->name = xstrdup(v->keys[i]->text);
		c->values = strv_copy(NULL);
		field_texts(r, &values, v->values[i], &c->values);
	}
}

static void field_repositories(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct oidc_issuer *issuer = target;

	if (!expect_kind(r, f, v, NODE_MAP))
		return;
	/* Without this check, an empty map would mean that the tokens' own `repository` claim counts. */
	if (v->n == 0)
		refuse_at(r, v->line,
		    "%s must not be empty; without repositories, the issuer's `repository` claim is trusted",
		    f->map->path);
	issuer->mappings = xcalloc(v->n, sizeof(*issuer->mappings));
	for (size_t i = 0; i < v->n; i++) {
		struct oidc_mapping *m = &issuer->mappings[issuer->n_mappings++];
		char why[WHY_BYTES];

		m->key = xstrdup(v->keys[i]->text);
		if (!check_pipeline(r, m->key, why))
			refuse_at(
			    r, v->keys[i]->line, "a key of %s must be %s, not %s", f->map->path, why, QUOTED(m->key));
		read_mapping(r, f->map, v->values[i], m);
	}
}

void field_issuers(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct config *c = target;

	if (!expect_kind(r, f, v, NODE_LIST))
		return;
	c->oidc_issuers = xcalloc(v->n, sizeof(*c->oidc_issuers));
	for (size_t i = 0; i < v->n; i++) {
		struct oidc_issuer *one = &c->oidc_issuers[c->n_oidc_issuers];

		read_mapping(r, f->map, v->values[i], one);
		for (size_t k = 0; one->issuer && k < c->n_oidc_issuers; k++)
			if (str_eq(c->oidc_issuers[k].issuer, one->issuer))
				refuse_at(r, v->values[i]->line, "this issuer is listed twice");
		c->n_oidc_issuers++;
	}
}

/* ---- CRCR's ci_providers.yml ---- */

enum { MAPPINGS_MAX = 1000, TEXT_MAX_BYTES = 1024 };

static const struct provider {
	const char *name, *issuer, *jwks_url;
	bool has_map; /* its tokens name no repository */
} PROVIDERS[] = {
    {"github", "https://token.actions.githubusercontent.com",
	"https://token.actions.githubusercontent.com/.well-known/jwks", false},
    {"buildkite", "https://agent.buildkite.com", "https://agent.buildkite.com/.well-known/jwks", true},
};

void oidc_default_issuers(struct config *c)
{
	c->oidc_issuers = xcalloc(1, sizeof(*c->oidc_issuers));
	c->oidc_issuers[0] =
	    (struct oidc_issuer){.issuer = xstrdup(PROVIDERS[0].issuer), .jwks_url = xstrdup(PROVIDERS[0].jwks_url)};
	c->n_oidc_issuers = 1;
}

static bool expect_map(struct reader *r, const struct node *v, const char *what)
{
	if (v->kind == NODE_MAP || v->kind == NODE_NULL)
		return true;
	refuse_at(r, v->line, "%s must be a map, not %s", what, tree_kind_name(v));
	return false;
}

static bool read_scalar(struct reader *r, const char *what, const struct node *v, check_fn *check, char **ret)
{
	char why[WHY_BYTES] = "a text";

	if (v->kind == NODE_SCALAR && strlen(v->text) <= TEXT_MAX_BYTES && check(r, v->text, why)) {
		free(*ret);
		*ret = xstrdup(v->text);
		return true;
	}
	refuse_at(r, v->line, "%s must be %s, not %s", what, why,
	    v->kind == NODE_SCALAR ? QUOTED(v->text) : tree_kind_name(v));
	return false;
}

/* claim: VALUE or [VALUE, …]. */
static void read_claim(struct reader *r, const struct node *key, const struct node *v, struct oidc_mapping *m)
{
	const struct node *one[] = {v};
	const struct node *const *values = v->kind == NODE_LIST ? (const struct node *const *)v->values : one;
	size_t n = v->kind == NODE_LIST ? v->n : 1;
	struct oidc_claim *c = &m->claims[m->n_claims++];

	*c = (struct oidc_claim){.name = xstrdup(key->text), .values = strv_copy(NULL)};
	if (n == 0)
		refuse_at(r, key->line, "a required claim must have a value; no token can match an empty list");
	for (size_t i = 0; i < n; i++) {
		char *text = NULL;

		if (read_scalar(r, "the value of a required claim", values[i], check_line, &text))
			strv_add(&c->values, text);
		free(text);
	}
}

/* ORGANIZATION_ID/PIPELINE_ID: owner/repo, or {repo, required_claims}. */
static void read_pipeline(struct reader *r, const struct node *key, const struct node *v, struct oidc_mapping *m)
{
	read_scalar(r, "a pipeline", key, check_pipeline, &m->key);
	if (v->kind != NODE_MAP) {
		read_scalar(r, "a pipeline's repository", v, check_repository, &m->repository);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct node *at = v->values[i];

		if (str_eq(v->keys[i]->text, "repo")) {
			read_scalar(r, "repo", at, check_repository, &m->repository);
		} else if (!str_eq(v->keys[i]->text, "required_claims")) {
			refuse_at(r, v->keys[i]->line, "unknown key %s; a pipeline has repo and required_claims",
			    QUOTED(v->keys[i]->text));
		} else if (expect_map(r, at, "required_claims") && !m->claims) {
			m->claims = xcalloc(at->n, sizeof(*m->claims));
			for (size_t k = 0; k < at->n; k++)
				read_claim(r, at->keys[k], at->values[k], m);
		}
	}
	if (!tree_get(v, "repo"))
		refuse_at(r, v->line, "repo is missing");
}

static void read_repo_map(struct reader *r, const struct node *v, struct oidc_issuer *ret)
{
	if (ret->mappings) /* a duplicate key, which is an error already */
		return;
	if (v->n > MAPPINGS_MAX) {
		refuse_at(r, v->line, "more than %d pipelines", MAPPINGS_MAX);
		return;
	}
	ret->mappings = xcalloc(v->n, sizeof(*ret->mappings));
	for (size_t i = 0; i < v->n; i++)
		read_pipeline(r, v->keys[i], v->values[i], &ret->mappings[ret->n_mappings++]);
}

/* Older files repeat the issuer and its keys. They must be the built-in ones: this file cannot make
 * Outpost trust another issuer. */
static void check_anchor(struct reader *r, const struct node *key, const struct node *v, const char *expected)
{
	if (v->kind != NODE_SCALAR || !str_eq(v->text, expected))
		refuse_at(r, key->line, "%s must be %s: add another issuer to github.oidc.issuers in outpost.yml",
		    QUOTED(key->text), expected);
}

static void read_provider(struct reader *r, const struct node *name, const struct node *v, struct oidc_issuer *ret)
{
	const struct provider *p = PROVIDERS, *end = PROVIDERS + ARRAY_LEN(PROVIDERS);

	while (p < end && !str_eq(p->name, name->text))
		p++;
	if (p == end)
		refuse_at(r, name->line, "unknown provider %s; known are github and buildkite", QUOTED(name->text));
	if (p == end || !expect_map(r, v, p->name))
		return;
	for (size_t i = 0; i < v->n; i++) {
		const char *key = v->keys[i]->text;

		if (str_eq(key, "issuer"))
			check_anchor(r, v->keys[i], v->values[i], p->issuer);
		else if (str_eq(key, "jwks_uri"))
			check_anchor(r, v->keys[i], v->values[i], p->jwks_url);
		else if (str_eq(key, "repo_map") && p->has_map) {
			if (expect_map(r, v->values[i], "repo_map"))
				read_repo_map(r, v->values[i], ret);
		} else {
			refuse_at(r, v->keys[i]->line, "unknown key %s; a provider has issuer, jwks_uri%s", QUOTED(key),
			    p->has_map ? " and repo_map" : "");
		}
	}
}

void ci_providers_read(struct reader *r, const struct node *root, struct oidc_issuer *ret)
{
	const struct node *flat = tree_get(root, "buildkite");
	struct oidc_issuer old = {0};

	*ret = (struct oidc_issuer){.issuer = xstrdup(PROVIDERS[1].issuer), .jwks_url = xstrdup(PROVIDERS[1].jwks_url)};
	if (!expect_map(r, root, "the file"))
		return;
	for (size_t i = 0; i < root->n; i++) {
		const struct node *v = root->values[i];

		if (str_eq(root->keys[i]->text, "providers") && expect_map(r, v, "providers"))
			for (size_t k = 0; k < v->n; k++)
				read_provider(r, v->keys[k], v->values[k], ret);
		else if (!str_eq(root->keys[i]->text, "providers") && !str_eq(root->keys[i]->text, "buildkite"))
			refuse_at(r, root->keys[i]->line, "unknown key %s; the file has providers",
			    QUOTED(root->keys[i]->text));
	}
	/* The flat map of pipelines of older relays. Like CRCR, uses it only if `providers` maps none. */
	if (!flat || !expect_map(r, flat, "buildkite"))
		return;
	read_repo_map(r, flat, &old);
	if (!ret->n_mappings) {
		free(ret->mappings);
		ret->mappings = old.mappings;
		ret->n_mappings = old.n_mappings;
		old = (struct oidc_issuer){0};
	}
	oidc_issuer_release(&old);
}

void ci_providers_add(struct reader *r, int line, struct config *c, struct oidc_issuer *from)
{
	struct oidc_issuer *to = NULL;

	if (!from->n_mappings)
		return;
	for (size_t i = 0; i < c->n_oidc_issuers && !to; i++)
		if (str_eq(c->oidc_issuers[i].issuer, from->issuer))
			to = &c->oidc_issuers[i];
	if (!to) {
		c->oidc_issuers = xrealloc(c->oidc_issuers, (c->n_oidc_issuers + 1) * sizeof(*c->oidc_issuers));
		c->oidc_issuers[c->n_oidc_issuers++] = *from;
		*from = (struct oidc_issuer){0};
		return;
	}
	for (size_t i = 0; i < to->n_mappings; i++)
		for (size_t k = 0; k < from->n_mappings; k++)
			if (str_eq(to->mappings[i].key, from->mappings[k].key))
				refuse_at(r, line,
				    "pipeline %s is in github.oidc.issuers and in github.oidc.ci_providers",
				    QUOTED(to->mappings[i].key));
	if (!to->n_mappings)
		refuse_at(r, line,
		    "github.oidc.ci_providers maps pipelines of %s, but github.oidc.issuers lists it "
		    "without repositories",
		    from->issuer);
	to->mappings = xrealloc(to->mappings, (to->n_mappings + from->n_mappings) * sizeof(*to->mappings));
	memcpy(&to->mappings[to->n_mappings], from->mappings, from->n_mappings * sizeof(*from->mappings));
	to->n_mappings += from->n_mappings;
	from->n_mappings = 0;
}
