#include "config/ci_providers.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "config/oidc.h"

enum { MAPPINGS_MAX = 1000, TEXT_MAX_BYTES = 1024 };

static const struct provider {
	const char *name, *issuer, *jwks_url;
	bool has_map; /* its tokens name no repository */
} PROVIDERS[] = {
    {"github", "https://token.actions.githubusercontent.com",
	"https://token.actions.githubusercontent.com/.well-known/jwks", false},
    {"buildkite", "https://agent.buildkite.com", "https://agent.buildkite.com/.well-known/jwks",
	true},
};

static bool want_map(struct reader *r, const struct node *v, const char *what)
{
	if (v->kind == NODE_MAP || v->kind == NODE_NULL)
		return true;
	problem_add(
	    r->problems, r->file, v->line, "%s must be a map, not %s", what, tree_kind_name(v));
	return false;
}

static bool read_text(
    struct reader *r, const char *what, const struct node *v, check_fn *check, char **ret)
{
	char why[WHY_BYTES] = "a text", value[SHOWN_BYTES];

	if (v->kind == NODE_SCALAR && strlen(v->text) <= TEXT_MAX_BYTES && check(r, v->text, why)) {
		free(*ret);
		*ret = xstrdup(v->text);
		return true;
	}
	problem_add(r->problems, r->file, v->line, "%s must be %s, not %s", what, why,
	    v->kind == NODE_SCALAR ? shown(v->text, value) : tree_kind_name(v));
	return false;
}

/* claim: VALUE or [VALUE, …]. */
static void read_claim(
    struct reader *r, const struct node *key, const struct node *v, struct oidc_mapping *m)
{
	const struct node *one[] = {v};
	const struct node *const *values =
	    v->kind == NODE_LIST ? (const struct node *const *)v->values : one;
	size_t n = v->kind == NODE_LIST ? v->n : 1;
	struct oidc_claim *c = &m->claims[m->n_claims++];

	*c = (struct oidc_claim){.name = xstrdup(key->text), .values = strv_copy(NULL)};
	if (n == 0)
		problem_add(r->problems, r->file, key->line,
		    "a required claim must have a value; without one no token has it");
	for (size_t i = 0; i < n; i++) {
		char *text = NULL;

		if (read_text(r, "the value of a required claim", values[i], check_line, &text))
			strv_add(&c->values, text);
		free(text);
	}
}

static void read_claims(struct reader *r, const struct node *v, struct oidc_mapping *m)
{
	if (!want_map(r, v, "required_claims"))
		return;
	if (m->claims)
		return;
	m->claims = xcalloc(v->n, sizeof(*m->claims));
	for (size_t i = 0; i < v->n; i++)
		read_claim(r, v->keys[i], v->values[i], m);
}

/* ORGANIZATION_ID/PIPELINE_ID: owner/repo, or {repo, required_claims}. */
static void read_entry(
    struct reader *r, const struct node *key, const struct node *v, struct oidc_mapping *m)
{
	char value[SHOWN_BYTES];

	read_text(r, "a pipeline", key, check_pipeline, &m->key);
	if (v->kind != NODE_MAP) {
		read_text(r, "a pipeline's repository", v, check_repository, &m->repository);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		if (str_eq(v->keys[i]->text, "repo"))
			read_text(r, "repo", v->values[i], check_repository, &m->repository);
		else if (str_eq(v->keys[i]->text, "required_claims"))
			read_claims(r, v->values[i], m);
		else
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "unknown key %s; a pipeline has repo and required_claims",
			    shown(v->keys[i]->text, value));
	}
	if (!tree_get(v, "repo"))
		problem_add(r->problems, r->file, v->line, "repo is missing");
}

static void read_repo_map(struct reader *r, const struct node *v, struct oidc_issuer *ret)
{
	if (ret->mappings) /* a key that is there twice, which is an error already */
		return;
	if (v->n > MAPPINGS_MAX) {
		problem_add(r->problems, r->file, v->line, "more than %d pipelines", MAPPINGS_MAX);
		return;
	}
	ret->mappings = xcalloc(v->n, sizeof(*ret->mappings));
	for (size_t i = 0; i < v->n; i++)
		read_entry(r, v->keys[i], v->values[i], &ret->mappings[ret->n_mappings++]);
}

/* Older files repeat the trust anchor. It may say what is believed anyway, never another. */
static void check_anchor(
    struct reader *r, const struct node *key, const struct node *v, const char *expected)
{
	char value[SHOWN_BYTES];

	if (v->kind != NODE_SCALAR || !str_eq(v->text, expected))
		problem_add(r->problems, r->file, key->line,
		    "%s must be %s: another issuer belongs into outpost.yml, github.oidc.issuers",
		    shown(key->text, value), expected);
}

static void read_provider(
    struct reader *r, const struct provider *p, const struct node *v, struct oidc_issuer *ret)
{
	char value[SHOWN_BYTES];

	if (!want_map(r, v, p->name))
		return;
	for (size_t i = 0; i < v->n; i++) {
		const char *key = v->keys[i]->text;

		if (str_eq(key, "issuer"))
			check_anchor(r, v->keys[i], v->values[i], p->issuer);
		else if (str_eq(key, "jwks_uri"))
			check_anchor(r, v->keys[i], v->values[i], p->jwks_url);
		else if (str_eq(key, "repo_map") && p->has_map) {
			if (want_map(r, v->values[i], "repo_map"))
				read_repo_map(r, v->values[i], ret);
		} else {
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "unknown key %s; a provider has issuer, jwks_uri%s", shown(key, value),
			    p->has_map ? " and repo_map" : "");
		}
	}
}

static void read_providers(struct reader *r, const struct node *v, struct oidc_issuer *ret)
{
	char value[SHOWN_BYTES];

	if (!want_map(r, v, "providers"))
		return;
	for (size_t i = 0; i < v->n; i++) {
		size_t k = 0;

		while (k < ARRAY_LEN(PROVIDERS) && !str_eq(PROVIDERS[k].name, v->keys[i]->text))
			k++;
		if (k < ARRAY_LEN(PROVIDERS))
			read_provider(r, &PROVIDERS[k], v->values[i], ret);
		else
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "unknown provider %s; known are github and buildkite",
			    shown(v->keys[i]->text, value));
	}
}

/* The flat map of pipelines that older relays read. As CRCR does, it counts only where `providers` maps none. */
static void read_flat(struct reader *r, const struct node *v, struct oidc_issuer *ret)
{
	struct oidc_issuer flat = {0};

	if (!want_map(r, v, "buildkite"))
		return;
	read_repo_map(r, v, &flat);
	if (!ret->n_mappings) {
		free(ret->mappings);
		ret->mappings = flat.mappings;
		ret->n_mappings = flat.n_mappings;
		flat = (struct oidc_issuer){0};
	}
	oidc_issuer_release(&flat);
}

void ci_providers_read(struct reader *r, const struct node *root, struct oidc_issuer *ret)
{
	const struct node *flat = tree_get(root, "buildkite");
	char value[SHOWN_BYTES];

	*ret = (struct oidc_issuer){
	    .issuer = xstrdup(PROVIDERS[1].issuer), .jwks_url = xstrdup(PROVIDERS[1].jwks_url)};
	if (!want_map(r, root, "the file"))
		return;
	for (size_t i = 0; i < root->n; i++) {
		if (str_eq(root->keys[i]->text, "providers"))
			read_providers(r, root->values[i], ret);
		else if (!str_eq(root->keys[i]->text, "buildkite"))
			problem_add(r->problems, r->file, root->keys[i]->line,
			    "unknown key %s; the file has providers",
			    shown(root->keys[i]->text, value));
	}
	if (flat)
		read_flat(r, flat, ret);
}

void ci_providers_add(struct reader *r, int line, struct config *c, struct oidc_issuer *from)
{
	struct oidc_issuer *to = NULL;
	char value[SHOWN_BYTES];

	if (!from->n_mappings)
		return;
	for (size_t i = 0; i < c->n_oidc_issuers && !to; i++)
		if (str_eq(c->oidc_issuers[i].issuer, from->issuer))
			to = &c->oidc_issuers[i];
	if (!to) {
		c->oidc_issuers =
		    xrealloc(c->oidc_issuers, (c->n_oidc_issuers + 1) * sizeof(*c->oidc_issuers));
		c->oidc_issuers[c->n_oidc_issuers++] = *from;
		*from = (struct oidc_issuer){0};
		return;
	}
	for (size_t i = 0; i < to->n_mappings; i++)
		for (size_t k = 0; k < from->n_mappings; k++)
			if (str_eq(to->mappings[i].key, from->mappings[k].key))
				problem_add(r->problems, r->file, line,
				    "pipeline %s is in github.oidc.issuers and in "
				    "github.oidc.ci_providers",
				    shown(to->mappings[i].key, value));
	if (!to->n_mappings)
		problem_add(r->problems, r->file, line,
		    "github.oidc.ci_providers maps pipelines of %s, which github.oidc.issuers "
		    "believes without repositories",
		    from->issuer);
	to->mappings =
	    xrealloc(to->mappings, (to->n_mappings + from->n_mappings) * sizeof(*to->mappings));
	memcpy(&to->mappings[to->n_mappings], from->mappings,
	    from->n_mappings * sizeof(*from->mappings));
	to->n_mappings += from->n_mappings;
	from->n_mappings = 0;
}
