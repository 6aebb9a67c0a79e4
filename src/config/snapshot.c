#include "config/snapshot.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/private_key.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/strv.h"
#include "config/fields.h"
#include "config/oidc.h"
#include "config/source.h"

struct snapshot {
	struct config c;
	atomic_int n_refs;
};

struct config *config_snapshot(struct config *content)
{
	struct snapshot *s = xcalloc(1, sizeof(*s));

	s->c = *content;
	*content = (struct config){0};
	atomic_init(&s->n_refs, 1);
	return &s->c;
}

struct config *config_ref(struct config *c)
{
	atomic_fetch_add(&CONTAINER_OF(c, struct snapshot, c)->n_refs, 1);
	return c;
}

void config_print_warnings(const struct config *c, FILE *out)
{
	for (char **file = c->exposed_files; file && *file; file++)
		fprintf(out, "warning: %s: " EXPOSED_FILE_TEXT "\n", *file);
	for (size_t i = 0; i < problems_n_kept(&c->notes); i++)
		fprintf(out, "note: %s:%d: %s\n", c->notes.all[i].file, c->notes.all[i].line,
		    c->notes.all[i].text);
}

static void release_texts(struct config *c)
{
	char *const owned[] = {c->path, c->listen, c->public_url, c->state_dir, c->store,
	    c->tls_certificate_file, c->tls_private_key_file, c->tls_certificate_pem,
	    c->upstream_repository, c->upstream_git_url, c->github_api_url, c->oidc_audience,
	    c->infra_repository, c->secrets_dir, c->accelerators_git_url,
	    c->accelerators_git_branch, c->accelerators_git_path, c->accelerators_git_folder,
	    c->accelerators_git_commit};

	for (size_t i = 0; i < ARRAY_LEN(owned); i++)
		free(owned[i]);
	strv_free(c->upstream_branches);
	strv_free(c->required_suites);
	strv_free(c->required_must_pass);
	strv_free(c->exposed_files);
	problems_release(&c->notes);
}

void config_release(struct config *c)
{
	release_texts(c);
	private_key_unref(c->tls_private_key);
	secret_unref(c->github_private_key);
	secret_unref(c->github_webhook_secret);
	free(c->trusted_proxies);
	free(c->allow_networks);
	for (size_t i = 0; i < c->n_oidc_issuers; i++)
		oidc_issuer_release(&c->oidc_issuers[i]);
	free(c->oidc_issuers);
	for (size_t i = 0; i < c->n_accelerators; i++)
		accelerator_release(&c->accelerators[i]);
	free(c->accelerators);
	*c = (struct config){0};
}

void config_unref(struct config *c)
{
	struct snapshot *s = c ? CONTAINER_OF(c, struct snapshot, c) : NULL;

	if (!s || atomic_fetch_sub(&s->n_refs, 1) != 1)
		return;
	config_release(&s->c);
	free(s);
}

bool config_is_registry_loaded(const struct config *c)
{
	return !c->accelerators_git_url || c->accelerators_git_commit;
}

const struct accelerator *config_accelerator(const struct config *c, const char *name)
{
	size_t low = 0, high = c->n_accelerators;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(name, c->accelerators[mid].name);

		if (order == 0)
			return &c->accelerators[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

const struct runner *accelerator_runner(const struct accelerator *a, const char *name)
{
	for (size_t i = 0; i < a->n_runners; i++)
		if (str_eq(a->runners[i].name, name))
			return &a->runners[i];
	return NULL;
}

void config_fixed_init(struct config_fixed *f, const struct config *c)
{
	*f = (struct config_fixed){
	    .listen = xstrdup(c->listen),
	    .state_dir = xstrdup(c->state_dir),
	    .store = xstrdup(c->store),
	    .has_tls = c->tls_certificate_pem != NULL,
	};
}

void config_fixed_release(struct config_fixed *f)
{
	free(f->listen);
	free(f->state_dir);
	free(f->store);
	*f = (struct config_fixed){0};
}

const char *config_needs_restart(const struct config_fixed *running, const struct config *c, int i)
{
	const struct {
		const char *key;
		bool is_other;
	} fixed[] = {
	    {"listen", !str_eq(running->listen, c->listen)},
	    {"state_dir", !str_eq(running->state_dir, c->state_dir)},
	    {"store", !str_eq(running->store, c->store)},
	    {"tls", running->has_tls != (c->tls_certificate_pem != NULL)},
	};

	for (size_t k = 0; k < ARRAY_LEN(fixed); k++)
		if (fixed[k].is_other && i-- == 0)
			return fixed[k].key;
	return NULL;
}
