#include "web/watch.h"

#include <string.h>

#include "base/str.h"
#include "base/strv.h"

static bool is_id(const char *text, int64_t *ret)
{
	return parse_int64(text, ret) == 0 && *ret > 0;
}

/* As contract and configuration allow for an accelerator's name. */
static bool is_name(const char *text)
{
	return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

int watch_parse(const char *path, struct watch *ret)
{
	static const char *const wide[] = {
	    "dashboard", "nightly", "platforms", "accelerators", "known", "status", NULL};
	const char *slash = strchr(path, '/'), *rest = slash ? slash + 1 : "";
	bool is_known = true;

	*ret = (struct watch){0};
	if (strlen(path) >= sizeof(ret->path))
		return ERR_INVALID;
	memcpy(ret->path, path, strlen(path) + 1);
	if (str_has_prefix(path, "pulls/") && is_id(rest, &ret->id))
		ret->kind = WATCH_PULL;
	else if (str_has_prefix(path, "commits/") && is_sha1(rest))
		ret->kind = WATCH_COMMIT;
	else if (str_has_prefix(path, "jobs/") && is_id(rest, &ret->id))
		ret->kind = WATCH_JOB;
	else if (str_has_prefix(path, "accelerators/") && is_name(rest))
		ret->kind = WATCH_ACCELERATOR;
	else if (strv_contains(wide, path) || (str_has_prefix(path, "platforms/") && is_name(rest)))
		ret->kind = WATCH_WIDE;
	else
		is_known = false;
	return is_known ? 0 : ERR_INVALID;
}

static bool has_id(const int64_t *list, size_t n, int64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == id)
			return true;
	return false;
}

const char *watch_name(const struct watch *w)
{
	const char *slash = strchr(w->path, '/');

	return slash ? slash + 1 : w->path;
}

bool watch_is_touched(const struct watch *w, const struct name_touched *n)
{
	const char *name = watch_name(w);

	if (!n || n->touched.is_all)
		return true;
	switch (w->kind) {
	case WATCH_PULL:
		return has_id(n->numbers, n->n_numbers, w->id);
	case WATCH_COMMIT:
		return strv_contains((const char *const *)n->shas, name);
	case WATCH_JOB:
		return has_id(n->touched.jobs, (size_t)n->touched.n_jobs, w->id);
	case WATCH_ACCELERATOR:
		return strv_contains((const char *const *)n->accelerators, name);
	case WATCH_WIDE:
		break;
	}
	return true;
}

void watch_write_event(struct buf *out, const struct watch *w, int64_t run, int64_t seq)
{
	buf_appendf(out, "id: %llx-%llx\nevent: change\ndata: {\"watch\":\"%s\"}\n\n",
	    (unsigned long long)run, (unsigned long long)seq, w->path);
}
