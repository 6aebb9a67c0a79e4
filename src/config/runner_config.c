/* outpost-runner's file and the files it names, read into one struct. */
#include "config/runner_config.h"

#include "config/runner_file.h"
#include "config/source.h"

enum { TOKEN_MAX_BYTES = 512, CA_MAX_BYTES = 4 << 20 };

struct load {
	struct reader r;
	char *folder; /* the base of relative paths */
	struct runner_file file;
	struct problems problems;
};

/* The secret behind a reference; NULL after its problem was added, or without a reference. */
static struct secret *read_secret(struct load *l, const char *prefix, const struct file_ref *ref)
{
	struct secret *secret = NULL;
	struct error e = {0};

	if (ref->path && source_read_secret(prefix, l->folder, ref->path, &l->file.c.exposed_files, &secret, &e))
		refuse_at(&l->r, ref->line, "cannot use %s", e.text);
	if (!secret || strlen(secret_text(secret)) == secret_bytes(secret))
		return secret;
	refuse_at(&l->r, ref->line, "cannot use %s: a variable cannot hold a NUL byte", ref->path);
	secret_unref(secret);
	return NULL;
}

static const char BEARER[] = "Authorization: Bearer ";

/* Checks the token, which becomes a header without escaping. */
static struct secret *read_authorization(struct load *l)
{
	const struct file_ref *ref = &l->file.token;
	struct secret *authorization = read_secret(l, BEARER, ref);
	const char *token = authorization ? secret_text(authorization) + strlen(BEARER) : "";

	for (const char *s = token; *s; s++)
		if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f || s - token >= TOKEN_MAX_BYTES) {
			refuse_at(&l->r, ref->line,
			    "%s has no token: it must be the one line that `outpostctl runner add` printed", ref->path);
			secret_unref(authorization);
			return NULL;
		}
	return authorization;
}

/* Paths become absolute, because the job's process and its steps have another working folder. */
static char *absolute_path(const char *folder, const char *written)
{
	char *path = source_path(folder, written);

	if (*path == '/')
		return path;
	char *here = getcwd(NULL, 0);
	char *whole = xasprintf("%s/%s", here ? here : "", path);
	FREE_ALL(here, path);
	return whole;
}

static void load_file(struct load *l)
{
	struct node *root = tree_read(l->r.file, l->r.file, &l->problems);
	struct runner_config *c = &l->file.c;
	const struct file_ref *ca = &l->file.ca, *git = &l->file.git_config;
	struct buf pem = BUF_INIT(CA_MAX_BYTES);
	struct secret *text = NULL;
	struct error e = {0};

	if (!root)
		return;
	runner_file_read(&l->r, root, &l->file);
	tree_free(root);
	c->path = absolute_path(".", l->r.file);
	c->work_dir = absolute_path(l->folder, l->file.work_dir.path);
	if (l->file.token.path)
		c->token_file = str_has_prefix(l->file.token.path, "credential:")
				    ? xstrdup(l->file.token.path)
				    : absolute_path(l->folder, l->file.token.path);
	c->authorization = read_authorization(l);
	if (ca->path) {
		c->ca_file = absolute_path(l->folder, ca->path);
		if (source_read(c->ca_file, &pem, &e))
			refuse_at(&l->r, ca->line, "cannot read %s", e.text);
		else if (!strstr(buf_str(&pem), "-----BEGIN CERTIFICATE-----"))
			refuse_at(&l->r, ca->line, "%s: not a PEM file with a certificate", c->ca_file);
		buf_release(&pem);
	}
	/* Checks this file here, because git silently ignores a file that it cannot read. */
	if (git->path) {
		struct error why = {0};

		c->git_config = absolute_path(l->folder, git->path);
		if (source_read_secret_file("", c->git_config, SECRET_BYTES, &c->exposed_files, &text, &why))
			refuse_at(&l->r, git->line, "cannot read %s", why.text);
		secret_unref(text);
	}
	for (size_t i = 0; i < c->n_secrets; i++)
		c->secrets[i].value = read_secret(l, "", &l->file.secrets[i]);
}

void runner_config_release(struct runner_config *c)
{
	secret_unref(c->authorization);
	if (c->submodule_proxy) /* it may hold a password */
		explicit_bzero(c->submodule_proxy, strlen(c->submodule_proxy));
	strv_free(c->labels);
	strv_free(c->allow_devices);
	strv_free(c->allow_read);
	strv_free(c->allow_write);
	strv_free(c->report_globs);
	strv_free(c->exposed_files);
	for (size_t i = 0; i < c->n_steps; i++)
		FREE_ALL(c->steps[i].name, c->steps[i].run);
	for (size_t i = 0; i < c->n_environment; i++)
		FREE_ALL(c->environment[i].name, c->environment[i].value);
	for (size_t i = 0; i < c->n_secrets; i++) {
		free(c->secrets[i].name);
		secret_unref(c->secrets[i].value);
	}
	FREE_ALL(c->path, c->server, c->name, c->token_file, c->ca_file, c->accelerator, c->work_dir, c->git_url,
	    c->git_config, c->git_networks.items, c->submodule_proxy, c->report_format, c->steps, c->environment,
	    c->secrets);
}

int runner_config_load(const char *path, struct runner_config **ret, struct buf *messages)
{
	struct load l = {.folder = path_folder(path)};

	*ret = NULL;
	l.r = (struct reader){.file = path, .problems = &l.problems, .path = ""};
	load_file(&l);
	problems_print(&l.problems, messages);
	int rc = l.problems.n ? ERR_INVALID : 0;
	runner_file_release(&l.file);
	if (rc)
		runner_config_release(&l.file.c);
	else
		*ret = xmemdup(&l.file.c, sizeof(l.file.c));
	problems_release(&l.problems);
	free(l.folder);
	return rc;
}

const char *runner_config_token(const struct runner_config *c)
{
	return secret_text(c->authorization) + strlen(BEARER);
}

int runner_config_read_authorization(const struct runner_config *c, struct secret **ret, struct error *e)
{
	struct load l = {.folder = xstrdup(".")};
	int rc = 0;

	l.r = (struct reader){.file = c->path, .problems = &l.problems, .path = ""};
	l.file.token = (struct file_ref){.path = c->token_file, .line = 1};
	*ret = read_authorization(&l);
	if (!*ret)
		rc = error_set(e, ERR_INVALID, "%s", l.problems.n ? l.problems.all[0].text : "there is no token");
	problems_release(&l.problems);
	strv_free(l.file.c.exposed_files);
	free(l.folder);
	return rc;
}

void runner_config_free(struct runner_config *c)
{
	if (!c)
		return;
	runner_config_release(c);
	free(c);
}
