#include "steps/environment.h"

#include <pwd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static char **find(struct environment *v, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < v->n; i++)
		if (!strncmp(v->list[i], name, n) && v->list[i][n] == '=')
			return &v->list[i];
	return NULL;
}

static void wipe(char *s)
{
	explicit_bzero(s, strlen(s));
	free(s);
}

static void set(struct environment *v, const char *name, const char *value)
{
	char **place = find(v, name), *text = xasprintf("%s=%s", name, value);

	if (place) {
		wipe(*place);
		*place = text;
		return;
	}
	v->list = xrealloc(v->list, (v->n + 2) * sizeof(*v->list));
	v->list[v->n++] = text;
	v->list[v->n] = NULL;
}

void environment_release(struct environment *v)
{
	for (size_t i = 0; i < v->n; i++)
		wipe(v->list[i]);
	free(v->list);
	*v = (struct environment){.n = 0};
}

static void set_ours_or(struct environment *v, const char *name, const char *fallback)
{
	const char *value = getenv(name);

	if (value || fallback)
		set(v, name, value ? value : fallback);
}

static void set_system(struct environment *v, const struct job *j)
{
	const struct passwd *user = getpwuid(geteuid());

	set_ours_or(v, "PATH", DEFAULT_PATH);
	set_ours_or(v, "LANG", "C.UTF-8");
	set_ours_or(v, "TZ", NULL);
	set(v, "HOME", j->work);
	set(v, "USER", user ? user->pw_name : "nobody");
	set(v, "TMPDIR", j->config->sandbox == SANDBOX_BUBBLEWRAP ? "/tmp" : j->temporary);
}

static void set_job(struct environment *v, const struct job *j)
{
	const struct lease_offer *o = &j->offer;
	const struct experiment_request *x = o->experiment;
	bool is_base = x && x->side == EXPERIMENT_BASE; /* nothing of the pull request is tested */
	char number[24] = "", attempt[16];

	if (o->number > 0 && !is_base)
		snprintf(number, sizeof(number), "%lld", (long long)o->number);
	snprintf(attempt, sizeof(attempt), "%d", o->attempt);
	set(v, "CI", "true");
	set(v, "OUTPOST_DISPATCH_ID", o->dispatch_id);
	set(v, "OUTPOST_HEAD_SHA", o->head_sha);
	set(v, "OUTPOST_PR", number);
	set(v, "OUTPOST_CHANGE_JSON", j->change_file);
	set(v, "OUTPOST_RESULTS", j->results);
	set(v, "OUTPOST_SOURCE_SHA", o->source_sha ? o->source_sha : "");
	set(v, "OUTPOST_REPOSITORY", o->repository);
	set(v, "OUTPOST_KIND", change_kind_name(o->kind));
	set(v, "OUTPOST_ACCELERATOR", o->accelerator);
	set(v, "OUTPOST_ATTEMPT", attempt);
	if (x) {
		set(v, "OUTPOST_TESTS", j->tests_file);
		set(v, "OUTPOST_EXPERIMENT_SIDE", experiment_side_name(x->side));
	}
}

void environment_of_step(struct environment *v, const struct job *j)
{
	const struct runner_config *c = j->config;

	set_system(v, j);
	for (size_t i = 0; i < c->n_environment; i++)
		set(v, c->environment[i].name, c->environment[i].value);
	for (size_t i = 0; i < c->n_secrets; i++)
		set(v, c->secrets[i].name, secret_text(c->secrets[i].value));
	set_job(v, j);
}

static void set_ours(struct environment *v, const char *const *names)
{
	for (; *names; names++)
		set_ours_or(v, *names, NULL);
}

void environment_of_check(struct environment *v)
{
	static const char *const names[] = {"HOME", "LANG", "TZ", "USER", NULL};

	set_ours_or(v, "PATH", DEFAULT_PATH);
	set_ours(v, names);
}

void environment_of_git(
    struct environment *v, const char *home, enum git_environment whose, const char *proxy)
{
	static const char *const names[] = {
	    "TZ", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR", NULL};
	static const char *const operators[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
	    "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSH_AUTH_SOCK", "KRB5CCNAME",
	    "KRB5_CONFIG", NULL};

	set_ours_or(v, "PATH", DEFAULT_PATH);
	set_ours(v, names);
	if (whose == GIT_FOR_OPERATOR)
		set_ours(v, operators);
	if (proxy)
		set(v, "all_proxy", proxy);
	set(v, "HOME", home);
	set(v, "LC_ALL", "C"); /* its messages are read here too */
	set(v, "GIT_CONFIG_NOSYSTEM", "1");
	set(v, "GIT_ATTR_NOSYSTEM", "1");
	set(v, "GIT_TERMINAL_PROMPT", "0");
	set(v, "GIT_ASKPASS", "true");
	set(v, "SSH_ASKPASS", "true");
}
