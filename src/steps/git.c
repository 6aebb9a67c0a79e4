#include "steps/git.h"

#include <arpa/inet.h>

#include "config/network.h"

enum { LINE_MAX_BYTES = 2000, PROGRESS_MS = 1000, ANSWER_MAX_BYTES = 1 << 20, URL_MAX_BYTES = 2048 };

/* git takes the last of two settings, so these come after those of the operator's file. */
static const char *const git_settings[] = {"core.hooksPath=/dev/null", "init.templateDir=", "core.fsmonitor=false",
    "core.attributesFile=/dev/null", "advice.detachedHead=false", "gc.auto=0", "protocol.ext.allow=never",
    "fetch.fsckObjects=false", "http.followRedirects=false", "transfer.bundleURI=false",
    /* packs are synced to disk, single objects are not */
    "fetch.unpackLimit=1",
    /* its lock file would stay after a kill */
    "gc.writeCommitGraph=false", "fetch.writeCommitGraph=false", NULL};

struct git_output {
	struct job *job;
	const struct git_remote *remote; /* NULL: no network */
	struct git_end *end;
	struct buf line;
	int64_t next_progress_ms;
	bool has_fatal;
	struct buf *answer; /* git_ask(): gets all output */
};

static const char *const missing_texts[] = {
    "not our ref", "unadvertised object", "couldn't find remote ref", "no such remote ref", NULL};

/* Keeps the line that explains a failure best: the first fatal one, else the last. git separates the states of a
 * progress line by carriage returns: one of them a second is logged. */
static void end_output_line(struct git_output *o, char separator)
{
	const char *line = buf_str(&o->line);
	bool is_fatal = str_has_prefix(line, "fatal: ") || str_has_prefix(line, "error: ");
	int64_t now_ms = clock_mono_ms();

	if (separator == '\n') {
		for (const char *const *p = missing_texts; *p; p++)
			if (strstr(line, *p))
				o->end->is_missing = o->end->is_final = true;
		if (strstr(line, "The requested URL returned error: 30"))
			o->end->is_redirect = o->end->is_final = true;
		/* A clone prints its reason before the line that says that it failed. */
		if (*line && (!o->has_fatal || (is_fatal && !str_has_prefix(line, "fatal: clone of ")))) {
			o->has_fatal = is_fatal;
			char *masked = masks_line(o->job->masks, line, sizeof(o->end->message) / 4);

			snprintf(o->end->message, sizeof(o->end->message), "%s", masked);
			free(masked);
		}
		buf_append_char(&o->line, '\n');
	}
	if (separator == '\n' || now_ms >= o->next_progress_ms) {
		job_log_output(o->job->log, buf_str(&o->line), o->line.len);
		if (separator != '\n')
			job_log_output(o->job->log, "\n", 1);
		o->next_progress_ms = now_ms + PROGRESS_MS;
	}
	buf_clear(&o->line);
}

static void on_git_output(void *ctx, const char *p, size_t n)
{
	struct git_output *o = ctx;

	if (o->answer) {
		buf_append(o->answer, p, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\n' || p[i] == '\r')
			end_output_line(o, p[i]);
		else if (p[i])
			/* a longer line is cut */
			buf_append_char(&o->line, p[i]);
}

static void add_setting(char ***argv, const char *setting)
{
	strv_add(argv, "-c");
	strv_add(argv, setting);
}

/* The order matters, because the last of two settings counts: the operator's file (only for the operator's own URL)
 * comes first, then our settings, then the one protocol that a submodule may use. Without the operator's URL
 * every protocol is off before one is allowed. */
static char **git_argv(const struct git_output *o, const char *const *args)
{
	const struct git_remote *r = o->remote;
	char **argv = NULL;

	strv_add(&argv, "git");
	if (r && r->kind == GIT_OPERATORS_URL) {
		add_setting(&argv, "core.sshCommand=ssh -oBatchMode=yes");
		if (o->job->config->git_config) {
			char *include = xasprintf("include.path=%s", o->job->config->git_config);

			add_setting(&argv, include);
			free(include);
		}
	} else {
		add_setting(&argv, "protocol.allow=never");
	}
	for (const char *const *p = git_settings; *p; p++)
		add_setting(&argv, *p);
	if (r && r->kind == GIT_CHANGES_URL) {
		add_setting(&argv, r->is_plain ? "protocol.http.allow=always" : "protocol.https.allow=always");
		add_setting(&argv, "http.emptyAuth=false");
		add_setting(&argv, "http.sslVerify=true");
	}
	for (; *args; args++)
		strv_add(&argv, *args);
	return argv;
}

/* git gets a few variables of ours, and git_home, a folder with the settings that git reads as the user's. git asks
 * no person for a password. GIT_OPERATORS_URL: also the operator's proxies, ssh agent and Kerberos tickets,
 * which are never for a change's URLs. The proxy, the one that git uses, may hold a password, so it is not an
 * argument of git, which every user of the machine can read. */
static int run_git(struct git_output *o, const char *folder, const char *const *args, struct error *e)
{
	static const char *const names[] = {"TZ", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR", NULL};
	static const char *const operators[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
	    "no_proxy", "NO_PROXY", "SSH_AUTH_SOCK", "KRB5CCNAME", "KRB5_CONFIG", NULL};
	const struct git_remote *remote = o->remote;
	struct job *j = o->job;
	struct environment env = {.n = 0};
	char **argv = git_argv(o, args);
	struct child_spec spec = {.argv = (const char *const *)argv,
	    .folder = folder,
	    .timeout_ms = job_time_left(j),
	    .kill_after_ms = j->pace.kill_after_ms,
	    .stop = &j->stop,
	    .on_output = on_git_output,
	    .ctx = o};
	struct child_end end;

	environment_copy(&env, "PATH", ENVIRONMENT_PATH);
	environment_copy_all(&env, names);
	if (remote && remote->kind == GIT_OPERATORS_URL)
		environment_copy_all(&env, operators);
	if (remote && remote->proxy)
		environment_set(&env, "all_proxy", remote->proxy);
	environment_set(&env, "HOME", j->git_home);
	environment_set(&env, "LC_ALL", "C"); /* this program reads its messages too */
	environment_set(&env, "GIT_CONFIG_NOSYSTEM", "1");
	environment_set(&env, "GIT_ATTR_NOSYSTEM", "1");
	environment_set(&env, "GIT_TERMINAL_PROMPT", "0");
	environment_set(&env, "GIT_ASKPASS", "true");
	environment_set(&env, "SSH_ASKPASS", "true");
	spec.env = (const char *const *)env.list;
	int rc = child_run(&spec, &end, e);
	if (!rc && o->line.len > 0)
		end_output_line(o, '\n');
	if (!rc && (end.is_cancelled || j->stop.is_requested))
		rc = error_set(e, ERR_CANCELLED, "cancelled during the checkout");
	else if (!rc && end.is_timeout)
		rc = error_set(e, ERR_TIMEOUT, "the job's time was over during the checkout");
	o->end->is_done = !rc && end.exit_code == 0;
	if (!o->end->is_done && !o->end->message[0])
		snprintf(o->end->message, sizeof(o->end->message), "git %s: exit %d, signal %d", args[0], end.exit_code,
		    end.signal);
	environment_release(&env);
	strv_free(argv);
	return rc;
}

int git_fetch(struct job *j, const char *folder, const struct git_remote *remote, const char *const *args,
    struct git_end *ret, struct error *e)
{
	struct git_output o = {.job = j, .remote = remote, .end = ret, .line = BUF_INIT(LINE_MAX_BYTES)};

	*ret = (struct git_end){.is_done = false};
	o.next_progress_ms = clock_mono_ms() + PROGRESS_MS;
	int rc = run_git(&o, folder, args, e);
	if (ret->is_done)
		ret->message[0] = '\0';
	buf_release(&o.line);
	return rc;
}

int git_must(struct job *j, const char *folder, const char *const *args, struct error *e)
{
	struct git_end end;
	int rc = git_fetch(j, folder, NULL, args, &end, e);

	if (!rc && !end.is_done)
		rc = error_set(e, ERR_IO, "%s", end.message);
	return rc;
}

int git_ask_bytes(
    struct job *j, const char *folder, const char *const *args, char **ret, size_t *ret_n, struct error *e)
{
	struct git_end end = {.is_done = false};
	struct buf answer = BUF_INIT(ANSWER_MAX_BYTES);
	struct git_output o = {.job = j, .end = &end, .line = BUF_INIT(LINE_MAX_BYTES), .answer = &answer};
	int rc = run_git(&o, folder, args, e);

	*ret = NULL;
	*ret_n = 0;
	if (!rc) {
		*ret_n = end.is_done ? answer.len : 0;
		*ret = end.is_done && answer.data ? buf_detach(&answer) : xstrdup("");
	}
	buf_release(&answer);
	return rc;
}

int git_ask(struct job *j, const char *folder, const char *const *args, char **ret, struct error *e)
{
	size_t n;
	int rc = git_ask_bytes(j, folder, args, ret, &n, e);

	while (n > 0 && (*ret)[n - 1] == '\n')
		(*ret)[--n] = '\0';
	return rc;
}

/* ---- the URLs of submodules ---- */

static bool is_domain_name(const char *s)
{
	const char *last = strrchr(s, '.');

	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_' &&
		    (*c != '.' || c == s || c[1] == '.' || !c[1]))
			return false;
	/* 127.1, 0x7f000001 and 017700000001 are addresses to some programs and names to others, so the last
	 * part must not begin with a digit. */
	last = last ? last + 1 : s;
	return *s && !isdigit((unsigned char)*last);
}

int git_url_parse(const char *text, struct git_url *ret)
{
	const char *p;

	*ret = (struct git_url){.is_plain = str_has_prefix(text, "http://")};
	if ((!ret->is_plain && !str_has_prefix(text, "https://")) || strlen(text) > URL_MAX_BYTES)
		return ERR_INVALID;
	for (p = text; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\')
			return ERR_INVALID;
	const char *host = strstr(text, "://") + 3;
	const char *end = host + strcspn(host, "/?#");
	if (*end != '/')
		return ERR_INVALID;
	const char *colon = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
	colon = colon ? memchr(colon, ':', (size_t)(end - colon)) : NULL;
	int64_t port = ret->is_plain ? 80 : 443;
	if (colon) {
		char digits[8];

		snprintf(digits, sizeof(digits), "%.*s", (int)(end - colon - 1), colon + 1);
		if (end - colon > 6 || !isdigit((unsigned char)*digits) || parse_int64(digits, &port) || port < 1 ||
		    port > 65535)
			return ERR_INVALID;
	}
	ret->port = (int)port;
	p = host;
	size_t n = (size_t)((colon ? colon : end) - host);
	bool is_bracketed = n > 2 && p[0] == '[' && p[n - 1] == ']';
	if (is_bracketed) {
		p++;
		n -= 2;
	}
	if (n == 0 || n > GIT_HOST_MAX_BYTES)
		return ERR_INVALID;
	for (size_t i = 0; i < n; i++)
		ret->host[i] = (char)tolower((unsigned char)p[i]);
	ret->host[n] = '\0';
	ret->is_address = address_parse(ret->host, ret->address) == 0;
	if (ret->is_address)
		return is_bracketed == !!strchr(ret->host, ':') ? 0 : ERR_INVALID;
	return !is_bracketed && is_domain_name(ret->host) ? 0 : ERR_INVALID;
}

char *git_url_resolve(const char *parent, const char *written)
{
	char *url = NULL, separator = '/';
	bool is_right = true;

	if (!str_has_prefix(written, "./") && !str_has_prefix(written, "../"))
		return xstrdup(written);
	char *base = xstrdup(parent);
	size_t n = strlen(base);
	while (n > 0 && base[n - 1] == '/')
		base[--n] = '\0';
	while (is_right && *written == '.') {
		if (str_has_prefix(written, "../")) {
			/* Removes the last component. */
			char *at = strrchr(base, '/');
			at = at ? at : strrchr(base, ':');
			is_right = at && at != base;
			separator = is_right ? *at : separator;
			if (is_right)
				*at = '\0';
			written += 3;
		} else if (str_has_prefix(written, "./")) {
			written += 2;
		} else {
			break;
		}
	}
	if (is_right)
		url = xasprintf("%s%c%s", base, separator, written);
	free(base);
	return url;
}
