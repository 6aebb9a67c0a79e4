#include "config/oidc.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"

static field_read_fn field_repositories, field_claims;

static const struct field MAPPING_FIELDS[] = {
    {"repository", field_text, REQUIRED, .offset = offsetof(struct oidc_mapping, repository),
	.check = check_repository, .max = 201},
    {"required_claims", field_claims, .presence = OPTIONAL},
    {.key = NULL},
};
static const struct mapping REPOSITORY = {"github.oidc.issuers.repositories", MAPPING_FIELDS};

static const struct field ISSUER_FIELDS[] = {
    {"issuer", field_text, REQUIRED, .offset = offsetof(struct oidc_issuer, issuer),
	.check = check_service_url, .max = 1024},
    {"jwks_url", field_text, REQUIRED, .offset = offsetof(struct oidc_issuer, jwks_url),
	.check = check_service_url, .max = 2048},
    {"repositories", field_repositories, OPTIONAL, .map = &REPOSITORY},
    {.key = NULL},
};
const struct mapping OIDC_ISSUER_MAPPING = {"github.oidc.issuers", ISSUER_FIELDS};

static void mapping_release(struct oidc_mapping *m)
{
	for (size_t i = 0; i < m->n_claims; i++) {
		free(m->claims[i].name);
		strv_free(m->claims[i].values);
	}
	free(m->claims);
	free(m->key);
	free(m->repository);
}

void oidc_issuer_release(struct oidc_issuer *i)
{
	for (size_t k = 0; k < i->n_mappings; k++)
		mapping_release(&i->mappings[k]);
	free(i->mappings);
	free(i->issuer);
	free(i->jwks_url);
}

/* required_claims: {name: [value, …]}. */
static void field_claims(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	static const struct field values = {
	    "required_claims", field_texts, REQUIRED, .check = check_line, .min = 1, .max = 1024};
	struct oidc_mapping *m = target;

	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a map");
		return;
	}
	m->claims = xcalloc(v->n, sizeof(*m->claims));
	for (size_t i = 0; i < v->n; i++) {
		struct oidc_claim *c = &m->claims[m->n_claims++];

		c->name = xstrdup(v->keys[i]->text);
		c->values = strv_copy(NULL);
		field_texts(r, &values, v->values[i], &c->values);
	}
}

static void field_repositories(
    struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct oidc_issuer *issuer = target;

	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a map");
		return;
	}
	/* Read as "no mapping", the tokens' own word for their repository would count. */
	if (v->n == 0)
		problem_add(r->problems, r->file, v->line,
		    "%s must not be empty; without it an issuer's `repository` claim is believed",
		    f->map->path);
	issuer->mappings = xcalloc(v->n, sizeof(*issuer->mappings));
	for (size_t i = 0; i < v->n; i++) {
		struct oidc_mapping *m = &issuer->mappings[issuer->n_mappings++];
		char why[WHY_BYTES], value[SHOWN_BYTES];

		m->key = xstrdup(v->keys[i]->text);
		if (!check_pipeline(r, m->key, why))
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "a key of %s must be %s, not %s", f->map->path, why,
			    shown(m->key, value));
		read_mapping(r, f->map, v->values[i], m);
	}
}

void field_issuers(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct config *c = target;

	if (v->kind != NODE_LIST && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a list");
		return;
	}
	c->oidc_issuers = xcalloc(v->n, sizeof(*c->oidc_issuers));
	for (size_t i = 0; i < v->n; i++) {
		struct oidc_issuer *one = &c->oidc_issuers[c->n_oidc_issuers];

		read_mapping(r, f->map, v->values[i], one);
		for (size_t k = 0; one->issuer && k < c->n_oidc_issuers; k++)
			if (str_eq(c->oidc_issuers[k].issuer, one->issuer))
				problem_add(r->problems, r->file, v->values[i]->line,
				    "this issuer is in the list twice");
		c->n_oidc_issuers++;
	}
}

void oidc_default_issuers(struct config *c)
{
	static const char actions[] = "https://token.actions.githubusercontent.com";

	c->oidc_issuers = xcalloc(1, sizeof(*c->oidc_issuers));
	c->oidc_issuers[0].issuer = xstrdup(actions);
	c->oidc_issuers[0].jwks_url = xasprintf("%s/.well-known/jwks", actions);
	c->n_oidc_issuers = 1;
}
