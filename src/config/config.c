/* outpost.yml and the files that it names, read into one snapshot. Reading continues after a mistake
 * where the rest still makes sense, so that one run shows all mistakes. */
#include "config/config.h"

#include <stdatomic.h>

#include "config/main_file.h"
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
		fprintf(out, "note: %s:%d: %s\n", c->notes.all[i].file, c->notes.all[i].line, c->notes.all[i].text);
}

void config_release(struct config *c)
{
	FREE_ALL(c->path, c->listen, c->public_url, c->state_dir, c->store, c->store_password_file, c->node,
	    c->logs_folder, c->logs_s3, c->s3_endpoint, c->s3_region, c->tls_certificate_file, c->tls_private_key_file,
	    c->tls_certificate_pem, c->upstream_repository, c->upstream_git_url, c->github_api_url, c->oidc_audience,
	    c->infra_repository, c->secrets_dir, c->accelerators_git_url, c->accelerators_git_branch,
	    c->accelerators_git_path, c->accelerators_git_folder, c->accelerators_git_commit, c->trusted_proxies,
	    c->allow_networks);
	strv_free(c->upstream_branches);
	strv_free(c->required_suites);
	strv_free(c->required_must_pass);
	strv_free(c->exposed_files);
	problems_release(&c->notes);
	private_key_free(c->tls_private_key);
	secret_unref(c->store_password);
	secret_unref(c->s3_access_key);
	secret_unref(c->s3_secret_key);
	secret_unref(c->s3_session_token);
	secret_unref(c->github_private_key);
	secret_unref(c->github_webhook_secret);
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

static int compare_with_name(const void *name, const void *accelerator)
{
	return strcmp(name, ((const struct accelerator *)accelerator)->name);
}

const struct accelerator *config_accelerator(const struct config *c, const char *name)
{
	size_t n = c->n_accelerators;

	return n ? bsearch(name, c->accelerators, n, sizeof(*c->accelerators), compare_with_name) : NULL;
}

const struct runner *accelerator_runner(const struct accelerator *a, const char *name)
{
	for (size_t i = 0; i < a->n_runners; i++)
		if (str_eq(a->runners[i].name, name))
			return &a->runners[i];
	return NULL;
}

static char *logs_place(const struct config *c)
{
	if (c->logs_s3)
		return xasprintf("%s/%s %s", c->s3_endpoint, c->logs_s3, c->s3_region);
	return xstrdup(c->logs_folder ? c->logs_folder : c->has_logs_in_database ? "database" : "state_dir");
}

void config_fixed_init(struct config_fixed *f, const struct config *c)
{
	*f = (struct config_fixed){
	    .listen = xstrdup(c->listen),
	    .state_dir = xstrdup(c->state_dir),
	    .store = xstrdup(c->store),
	    .node = xstrdup_or_null(c->node),
	    .store_password = c->store_password ? secret_ref(c->store_password) : NULL,
	    .logs = logs_place(c),
	    .has_tls = c->tls_certificate_pem != NULL,
	};
}

void config_fixed_release(struct config_fixed *f)
{
	FREE_ALL(f->listen, f->state_dir, f->store, f->node, f->logs);
	secret_unref(f->store_password);
	*f = (struct config_fixed){0};
}

const char *config_needs_restart(const struct config_fixed *running, const struct config *c, int i)
{
	char *logs = logs_place(c);
	const struct {
		const char *key;
		bool is_other;
	} fixed[] = {
	    {"listen", !str_eq(running->listen, c->listen)},
	    {"state_dir", !str_eq(running->state_dir, c->state_dir)},
	    {"store", !str_eq(running->store, c->store)},
	    {"store_password_file", !secret_equal(running->store_password, c->store_password)},
	    {"node", !str_eq(running->node, c->node)},
	    {"logs", !str_eq(running->logs, logs)},
	    {"tls", running->has_tls != (c->tls_certificate_pem != NULL)},
	};

	free(logs);
	for (size_t k = 0; k < ARRAY_LEN(fixed); k++)
		if (fixed[k].is_other && i-- == 0)
			return fixed[k].key;
	return NULL;
}

enum { COMMIT_CHARS = 40 };

struct load {
	const char *path;
	char *folder; /* the base of relative paths */
	const struct registry_files *files;
	struct main_file main;
	struct problems problems;
};

/* The secret behind a reference; NULL after its problem was added, or without a reference. `exposed` as
 * source_read_secret(). */
static struct secret *read_secret(struct load *l, const struct file_ref *ref, char ***exposed)
{
	struct secret *secret = NULL;
	struct error e = {0};

	if (ref->path && source_read_secret("", l->folder, ref->path, exposed, &secret, &e))
		problem_add(&l->problems, l->path, ref->line, "cannot read %s", e.text);
	return secret;
}

/* The certificate is not secret, but like its key it may be one of systemd's credentials. */
static char *read_certificate(struct load *l, const struct file_ref *ref)
{
	char **ignored = NULL;
	struct secret *pem = read_secret(l, ref, &ignored);
	char *text = pem ? xstrdup(secret_text(pem)) : NULL;

	if (text && (strlen(text) != secret_bytes(pem) || !strstr(text, "-----BEGIN CERTIFICATE")))
		problem_add(&l->problems, l->path, ref->line, "%s is not a PEM file with a CERTIFICATE", ref->path);
	strv_free(ignored);
	secret_unref(pem);
	return text;
}

/* Adds CRCR's file of pipelines to the issuers of outpost.yml. */
static void read_ci_providers(struct load *l)
{
	const struct file_ref *ref = &l->main.ci_providers;
	struct reader main = {.file = l->path, .problems = &l->problems, .path = ""};
	struct reader own = {.problems = &l->problems, .path = ""};
	struct oidc_issuer issuer = {0};

	if (!ref->path)
		return;
	char *path = source_path(l->folder, ref->path);
	own.file = path;
	struct node *root = tree_read(path, path, &l->problems);
	if (root) {
		ci_providers_read(&own, root, &issuer);
		ci_providers_add(&main, ref->line, &l->main.c, &issuer);
	}
	oidc_issuer_release(&issuer);
	tree_free(root);
	free(path);
}

static char *resolve_path(const struct load *l, const struct file_ref *ref)
{
	if (!ref->path)
		return NULL;
	return str_has_prefix(ref->path, "credential:") ? xstrdup(ref->path) : source_path(l->folder, ref->path);
}

/* The value of the first of these variables that is set, or NULL. */
static const char *first_variable(const char *const *names)
{
	const char *value = NULL;

	for (; *names && (!value || !*value); names++)
		value = getenv(*names);
	return value && *value ? value : NULL;
}

/* A setting of s3 that the file leaves out: from the environment, as S3's own tools read it, or `otherwise`. */
static void read_s3_setting(
    struct load *l, char **setting, const char *const *names, check_fn *check, const char *otherwise)
{
	const char *value = first_variable(names);
	char why[WHY_BYTES];

	if (*setting)
		return;
	if (value && !check(NULL, value, why)) {
		problem_add(&l->problems, l->path, l->main.logs.line, "logs: the variable %s must be %s, not %s",
		    names[0], why, QUOTED(value));
		value = NULL;
	}
	*setting = xstrdup(value ? value : otherwise);
}

/* A key from its file, or from a variable of the environment. */
static struct secret *read_s3_key(struct load *l, const struct file_ref *ref, const char *variable)
{
	struct secret *key = read_secret(l, ref, &l->main.c.exposed_files);
	const char *value = ref->path ? NULL : first_variable((const char *const[]){variable, NULL});
	struct error e = {0};

	if (value && secret_new(value, strlen(value), &key, &e))
		problem_add(&l->problems, l->path, l->main.logs.line, "logs: %s: %s", variable, e.text);
	for (const char *c = key ? secret_text(key) : ""; *c; c++)
		if (*c <= ' ' || *c > '~') {
			problem_add(&l->problems, l->path, ref->path ? ref->line : l->main.logs.line,
			    "%s is not a key of S3: it has a character that no key has",
			    ref->path ? ref->path : variable);
			break;
		}
	return key;
}

static void read_logs_place(struct load *l)
{
	struct main_file *m = &l->main;
	struct config *c = &m->c;
	bool is_server = c->store && !str_eq(c->store, "sqlite");
	const char *place = m->logs.path ? m->logs.path : is_server ? "database" : "state_dir";

	c->logs_line = m->logs.line;
	if (!c->store) /* a mistake in it is reported, and the right place is not known */
		return;
	c->has_logs_in_database = str_eq(place, "database");
	if (c->has_logs_in_database && !is_server)
		problem_add(&l->problems, l->path, m->logs.line,
		    "logs: database needs store: postgresql://…; with SQLite use state_dir, a folder or "
		    "s3://BUCKET/PREFIX");
	if (is_server && str_eq(place, "state_dir"))
		problem_add(&l->problems, l->path, m->logs.line,
		    "logs: state_dir needs store: sqlite, because the other daemons cannot read it; with PostgreSQL "
		    "use database, a "
		    "folder that all daemons mount, or s3://BUCKET/PREFIX");
	if (m->s3_line && !str_has_prefix(place, "s3://"))
		problem_add(&c->notes, l->path, m->s3_line, "s3 has no effect, because logs is not s3://BUCKET/PREFIX");
	if (str_eq(place, "state_dir") || c->has_logs_in_database)
		return;
	if (!str_has_prefix(place, "s3://")) {
		c->logs_folder = source_path(l->folder, place);
		return;
	}
	c->logs_s3 = xstrdup(place + strlen("s3://"));
	url_cut_slashes(c->logs_s3);
	read_s3_setting(
	    l, &c->s3_region, (const char *const[]){"AWS_REGION", "AWS_DEFAULT_REGION", NULL}, check_name, "us-east-1");
	char *aws = xasprintf("https://s3.%s.amazonaws.com", c->s3_region);
	read_s3_setting(l, &c->s3_endpoint, (const char *const[]){"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL},
	    check_public_url, aws);
	free(aws);
	url_cut_slashes(c->s3_endpoint);
	c->s3_access_key = read_s3_key(l, &m->s3_access_key, "AWS_ACCESS_KEY_ID");
	c->s3_secret_key = read_s3_key(l, &m->s3_secret_key, "AWS_SECRET_ACCESS_KEY");
	if (!m->s3_access_key.path != !m->s3_secret_key.path)
		problem_add(
		    &l->problems, l->path, m->s3_line, "s3 must have access_key_file and secret_key_file, or neither");
	else if (!m->s3_access_key.path && (!c->s3_access_key || !c->s3_secret_key))
		problem_add(&l->problems, l->path, m->logs.line,
		    "logs: S3 needs s3.access_key_file and s3.secret_key_file, or the variables AWS_ACCESS_KEY_ID and "
		    "AWS_SECRET_ACCESS_KEY");
	else if (!m->s3_access_key.path)
		c->s3_session_token = read_s3_key(l, &(struct file_ref){0}, "AWS_SESSION_TOKEN");
}

static void load_main_file(struct load *l)
{
	struct reader r = {.file = l->path, .problems = &l->problems, .path = ""};
	struct node *root = tree_read(l->path, l->path, &l->problems);
	struct main_file *m = &l->main;
	struct config *c = &m->c;
	struct error e = {0}, tls = {0};

	if (!root)
		return;
	main_file_read(&r, root, m);
	tree_free(root);
	c->path = xstrdup(l->path);
	c->state_dir = resolve_path(l, &m->state_dir);
	c->secrets_dir = resolve_path(l, &m->secrets_dir);
	c->tls_certificate_file = resolve_path(l, &m->tls_certificate);
	c->tls_private_key_file = resolve_path(l, &m->tls_private_key);
	c->store_password_file = resolve_path(l, &m->store_password);
	c->store_password = read_secret(l, &m->store_password, &c->exposed_files);
	/* Checks the App's key here, because its first use is at the first request. */
	c->github_private_key = read_secret(l, &m->private_key, &c->exposed_files);
	if (c->github_private_key && rsa_private_key_check(c->github_private_key, &e))
		refuse_at(&r, m->private_key.line, "%s: %s", m->private_key.path, e.text);
	c->github_webhook_secret = read_secret(l, &m->webhook_secret, &c->exposed_files);
	c->tls_certificate_pem = read_certificate(l, &m->tls_certificate);
	/* Wipes the PEM text at once, so that memory has the key in one form only. The TLS layer checks that the key
	 * belongs to the certificate. */
	struct secret *pem = read_secret(l, &m->tls_private_key, &c->exposed_files);
	if (pem && private_key_parse(pem, &c->tls_private_key, &tls))
		refuse_at(&r, m->tls_private_key.line, "%s: %s", m->tls_private_key.path, tls.text);
	secret_unref(pem);
	read_ci_providers(l);
	read_logs_place(l);
	/* Without `accelerators`, the folder accelerators.d next to outpost.yml is the registry, if it exists. */
	char *path = source_path(l->folder, "accelerators.d");
	if (!m->has_accelerators && access(path, F_OK) == 0)
		m->directory = (struct file_ref){.path = xstrdup("accelerators.d"), .line = 1};
	free(path);
	if (c->accelerators_git_url && l->files && l->files->folder)
		c->accelerators_git_folder = xstrdup(l->files->folder);
	else if (c->accelerators_git_url && l->files && l->files->find && c->state_dir)
		c->accelerators_git_folder = l->files->find(c->state_dir);
	if (c->accelerators_git_folder) { /* its name begins with the commit */
		const char *slash = strrchr(c->accelerators_git_folder, '/');
		const char *name = slash ? slash + 1 : c->accelerators_git_folder;

		c->accelerators_git_commit = xstrndup(name, strnlen(name, COMMIT_CHARS));
	}
	registry_read(l->folder, m, &l->problems);
	c->trusted_proxies = m->trusted_proxies.items;
	c->n_trusted_proxies = m->trusted_proxies.n;
	c->allow_networks = m->allow_networks.items;
	c->n_allow_networks = m->allow_networks.n;
	m->trusted_proxies = m->allow_networks = (struct network_list){0};
}

int config_load(const char *path, struct config **ret, struct buf *messages)
{
	return config_load_with(path, NULL, ret, messages);
}

int config_load_with(const char *path, const struct registry_files *files, struct config **ret, struct buf *messages)
{
	struct load l = {.path = path, .folder = path_folder(path), .files = files};

	*ret = NULL;
	load_main_file(&l);
	problems_print(&l.problems, messages);
	int rc = l.problems.n ? ERR_INVALID : 0;
	if (!rc)
		*ret = config_snapshot(&l.main.c);
	main_file_release(&l.main);
	problems_release(&l.problems);
	free(l.folder);
	return rc;
}

/* The text of one key at the top of the file. ERR_NOT_FOUND: it has no such key. free() *ret. */
static int read_top_key(const char *path, const char *key, char **ret, struct error *e)
{
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct problems problems = {0};
	int rc = source_read(path, &text, e);

	*ret = NULL;
	struct node *root = rc ? NULL : tree_parse(path, buf_str(&text), text.len, &problems);
	const struct node *value = tree_get(root, key);
	if (value && value->kind == NODE_SCALAR && *value->text)
		*ret = xstrdup(value->text);
	else if (!rc)
		rc = error_set(e, ERR_NOT_FOUND, "%s: %s is missing", path, key);
	tree_free(root);
	problems_release(&problems);
	buf_release(&text);
	return rc;
}

int config_state_dir(const char *path, char **ret, struct error *e)
{
	char *text;
	int rc = read_top_key(path, "state_dir", &text, e);

	*ret = NULL;
	if (rc)
		return rc;
	char *folder = path_folder(path);
	*ret = source_path(folder, text);
	FREE_ALL(folder, text);
	return 0;
}

bool store_has_password(const char *url)
{
	const char *user = strstr(url, "://");
	size_t n = user ? strcspn(user + 3, "@/?") : 0;

	return user && (strstr(url, "password=") || (user[3 + n] == '@' && memchr(user + 3, ':', n)));
}

int config_store(const char *path, char **ret_url, struct secret **ret_password, struct error *e)
{
	struct error ignored = {0};
	char *url = NULL, *file = NULL, **exposed = NULL;
	int rc = read_top_key(path, "store", &url, &ignored) == ERR_NOT_FOUND ? 0 : ignored.code;

	*ret_url = NULL;
	*ret_password = NULL;
	if (!rc && url && !str_eq(url, "sqlite")) {
		*ret_url = url;
		url = NULL;
		if (read_top_key(path, "store_password_file", &file, &ignored) == 0) {
			char *folder = path_folder(path);

			rc = source_read_secret("", folder, file, &exposed, ret_password, &ignored);
			free(folder);
		}
	}
	strv_free(exposed);
	FREE_ALL(url, file);
	return rc ? error_set(e, rc, "%s", ignored.text) : 0;
}

int config_public_url(const char *path, char **ret, struct error *e)
{
	return read_top_key(path, "public_url", ret, e);
}
