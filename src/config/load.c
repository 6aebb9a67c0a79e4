/* outpost.yml and all that it names, read into one snapshot. Reading goes on after a
 * mistake wherever the rest still makes sense, so that one look shows them all. */
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/private_key.h"
#include "base/rsa.h"
#include "base/str.h"
#include "base/strv.h"
#include "config/ci_providers.h"
#include "config/config.h"
#include "config/main_file.h"
#include "config/oidc.h"
#include "config/registry.h"
#include "config/snapshot.h"
#include "config/source.h"

struct load {
	const char *path;
	char *folder; /* what relative paths start from */
	const struct registry_files *files;
	struct main_file main;
	struct problems problems;
};

/* The secret behind a reference; NULL after its problem was added, or without a reference. */
static struct secret *read_secret(struct load *l, const struct file_ref *ref)
{
	struct secret *secret = NULL;
	struct error e = {0};

	if (ref->path &&
	    source_read_secret("", l->folder, ref->path, &l->main.c.exposed_files, &secret, &e))
		problem_add(&l->problems, l->path, ref->line, "cannot read %s", e.text);
	return secret;
}

/* GitHub's App uses its key at the first request; a bad one is reported now. */
static struct secret *read_app_key(struct load *l, const struct file_ref *ref)
{
	struct secret *pem = read_secret(l, ref);
	struct error e = {0};

	if (pem && rsa_private_key_check(pem, &e))
		problem_add(&l->problems, l->path, ref->line, "%s: %s", ref->path, e.text);
	return pem;
}

/* The PEM text is wiped at once: the key lies in memory in one form. Whether it belongs to the
 * certificate, the TLS layer checks. */
static struct private_key *read_tls_key(struct load *l, const struct file_ref *ref)
{
	struct secret *pem = read_secret(l, ref);
	struct private_key *key = NULL;
	struct error e = {0};

	if (pem && private_key_parse(pem, &key, &e))
		problem_add(&l->problems, l->path, ref->line, "%s: %s", ref->path, e.text);
	secret_unref(pem);
	return key;
}

/* Not secret, but it may lie beside its key among systemd's credentials. */
static char *read_certificate(struct load *l, const struct file_ref *ref)
{
	struct secret *pem = NULL;
	char **ignored = NULL, *text;
	struct error e = {0};

	if (ref->path && source_read_secret("", l->folder, ref->path, &ignored, &pem, &e))
		problem_add(&l->problems, l->path, ref->line, "cannot read %s", e.text);
	strv_free(ignored);
	text = pem ? xstrdup(secret_text(pem)) : NULL;

	if (text && (strlen(text) != secret_bytes(pem) || !strstr(text, "-----BEGIN CERTIFICATE")))
		problem_add(&l->problems, l->path, ref->line,
		    "%s is not a PEM file with a CERTIFICATE", ref->path);
	secret_unref(pem);
	return text;
}

static void read_secrets(struct load *l)
{
	struct config *c = &l->main.c;

	c->github_private_key = read_app_key(l, &l->main.private_key);
	c->github_webhook_secret = read_secret(l, &l->main.webhook_secret);
	c->tls_certificate_pem = read_certificate(l, &l->main.tls_certificate);
	c->tls_private_key = read_tls_key(l, &l->main.tls_private_key);
}

/* CRCR's file of pipelines, beside the issuers of outpost.yml. */
static void read_ci_providers(struct load *l)
{
	const struct file_ref *ref = &l->main.ci_providers;
	struct reader main = {.file = l->path, .problems = &l->problems, .path = ""};
	struct reader own = {.problems = &l->problems, .path = ""};
	struct oidc_issuer issuer = {0};
	struct node *root;
	char *path;

	if (!ref->path)
		return;
	path = source_path(l->folder, ref->path);
	own.file = path;
	root = tree_read(path, &l->problems);
	if (root) {
		ci_providers_read(&own, root, &issuer);
		ci_providers_add(&main, ref->line, &l->main.c, &issuer);
	}
	oidc_issuer_release(&issuer);
	tree_free(root);
	free(path);
}

static char *resolve(const struct load *l, const struct file_ref *ref)
{
	if (!ref->path)
		return NULL;
	return str_has_prefix(ref->path, "credential:") ? xstrdup(ref->path)
							: source_path(l->folder, ref->path);
}

/* A registry that nobody wrote down is the folder beside outpost.yml, if there is one. */
static void default_registry(struct load *l)
{
	char *path = source_path(l->folder, "accelerators.d");

	if (!l->main.has_accelerators && access(path, F_OK) == 0)
		l->main.directory = (struct file_ref){.path = xstrdup("accelerators.d"), .line = 1};
	free(path);
}

enum { COMMIT_CHARS = 40 };

/* The commit is what the folder's name begins with. */
static void find_checkout(struct load *l)
{
	struct config *c = &l->main.c;
	const char *name;

	if (!c->accelerators_git_url || !l->files)
		return;
	if (l->files->folder)
		c->accelerators_git_folder = xstrdup(l->files->folder);
	else if (l->files->find && c->state_dir)
		c->accelerators_git_folder = l->files->find(c->state_dir);
	if (!c->accelerators_git_folder)
		return;
	name = strrchr(c->accelerators_git_folder, '/');
	name = name ? name + 1 : c->accelerators_git_folder;
	c->accelerators_git_commit = xstrndup(name, strnlen(name, COMMIT_CHARS));
}

static void read_rest(struct load *l)
{
	struct main_file *m = &l->main;

	m->c.path = xstrdup(l->path);
	m->c.state_dir = resolve(l, &m->state_dir);
	m->c.secrets_dir = resolve(l, &m->secrets_dir);
	m->c.tls_certificate_file = resolve(l, &m->tls_certificate);
	m->c.tls_private_key_file = resolve(l, &m->tls_private_key);
	read_secrets(l);
	read_ci_providers(l);
	default_registry(l);
	find_checkout(l);
	registry_read(l->folder, m, &l->problems);
	m->c.trusted_proxies = m->trusted_proxies.items;
	m->c.n_trusted_proxies = m->trusted_proxies.n;
	m->c.allow_networks = m->allow_networks.items;
	m->c.n_allow_networks = m->allow_networks.n;
	m->trusted_proxies = (struct network_list){0};
	m->allow_networks = (struct network_list){0};
}

static void load(struct load *l)
{
	struct reader r = {.file = l->path, .problems = &l->problems, .path = ""};
	struct node *root = tree_read(l->path, &l->problems);

	if (!root)
		return;
	main_file_read(&r, root, &l->main);
	tree_free(root);
	read_rest(l);
}

int config_load(const char *path, struct config **ret, struct buf *messages)
{
	return config_load_with(path, NULL, ret, messages);
}

int config_load_with(
    const char *path, const struct registry_files *files, struct config **ret, struct buf *messages)
{
	struct load l = {.path = path, .folder = path_folder(path), .files = files};
	int rc;

	*ret = NULL;
	load(&l);
	problems_print(&l.problems, messages);
	rc = l.problems.n ? ERR_INVALID : 0;
	if (!rc)
		*ret = config_snapshot(&l.main.c);
	main_file_release(&l.main);
	problems_release(&l.problems);
	free(l.folder);
	return rc;
}
