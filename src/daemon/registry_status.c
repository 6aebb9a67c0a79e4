#include "daemon/registry_status.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "daemon/wire.h"

enum { REASONS_MAX_BYTES = 64 * 1024 };

/* Of the mistakes those in the registry's own files: they are public, outpost.yml is not. */
static json_t *public_reasons(const char *why)
{
	struct buf kept = BUF_INIT(REASONS_MAX_BYTES);
	const char *end;
	json_t *text;

	for (const char *line = why; *line; line = end) {
		end = strchrnul(line, '\n');
		end += *end != '\0';
		if (str_has_prefix(line, "accelerators.git@"))
			buf_append(&kept, line, (size_t)(end - line));
	}
	text = json_string(kept.len ? buf_str(&kept) : "it does not check with the configuration");
	buf_release(&kept);
	return text;
}

static json_t *status_json(const struct daemon *d, bool is_public)
{
	const struct registry_status *s = registry_status(d->registry);
	json_t *v;

	if (!s->is_used)
		return json_null();
	v = json_object();
	json_set_str(v, "url", d->config->accelerators_git_url);
	json_set_str(v, "branch", d->config->accelerators_git_branch);
	json_set_str(v, "path", d->config->accelerators_git_path);
	json_set_str(v, "commit", *s->commit ? s->commit : NULL);
	json_set_time(v, "in_force_since", s->commit_wall_ms);
	json_set_time(v, "fetched_at", s->fetched_wall_ms);
	json_set_str(v, "refused", *s->refused ? s->refused : NULL);
	if (is_public && s->refused_why)
		json_object_set_new(v, "refused_why", public_reasons(s->refused_why));
	else
		json_set_str(v, "refused_why", s->refused_why);
	json_set_str(v, "fetch_error", s->fetch_error);
	return v;
}

void registry_status_add(json_t *status, const struct daemon *d)
{
	json_object_set_new(status, "registry", status_json(d, false));
}

void registry_status_add_public(json_t *status, void *owner)
{
	json_object_set_new(status, "registry", status_json(owner, true));
}

static void put(struct buf *out, const char *name, const char *help, int64_t value)
{
	buf_appendf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", name, help, name, name,
	    (long long)value);
}

void registry_status_write_metrics(struct buf *out, const struct daemon *d)
{
	const struct registry_status *s = registry_status(d->registry);

	if (!s->is_used)
		return;
	put(out, "outpost_registry_loaded", "1 when a commit of accelerators.git is in force.",
	    *s->commit != '\0');
	put(out, "outpost_registry_refused", "1 while its newest commit stands refused.",
	    *s->refused != '\0');
	put(out, "outpost_registry_fetch_failed", "1 when the last fetch failed.",
	    s->fetch_error != NULL);
	put(out, "outpost_registry_fetched_timestamp_seconds", "When a fetch last went through.",
	    s->fetched_wall_ms / 1000);
	put(out, "outpost_registry_commit_timestamp_seconds",
	    "When the commit in force came into force.", s->commit_wall_ms / 1000);
}
