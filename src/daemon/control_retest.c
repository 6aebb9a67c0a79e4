/* outpostctl retest: another round of a pull request's head or of a push. */
#include <ctype.h>

#include "base/alloc.h"
#include "base/str.h"
#include "daemon/control_internal.h"
#include "store/retest.h"

enum { NUMBER_MAX_CHARS = 9, SHA_MIN_CHARS = 7, SHA_CHARS = 40 };

struct control_retest {
	struct http_request *request;
	struct retest_request retest;
	char *sha, *accelerator;
};

static void end(struct control_retest *q)
{
	free(q->sha);
	free(q->accelerator);
	free(q);
}

static json_t *one_json(const struct retested *one)
{
	json_t *o = json_object();

	json_set_str(o, "accelerator", one->accelerator);
	json_set_str(o, "runner", one->runner);
	json_set_str(o, "result", retest_result_name(one->result));
	json_set_str(o, "dispatch", one->id[0] ? one->id : NULL);
	return o;
}

static void retested(struct retest_request *r)
{
	struct control_retest *q = r->owner;
	json_t *v = json_object(), *list = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(list, one_json(&r->list[i]));
	json_set_int(v, "pr", r->pull_number);
	json_set_str(v, "head_sha", r->head_sha);
	json_object_set_new(v, "runners", list);
	if (r->err) {
		control_respond_error(q->request, r->err, r->why.text);
		json_decref(v);
	} else {
		control_respond(q->request, 200, v);
	}
	retested_release(r->list, r->n);
	end(q);
}

/* A PR's number, or a commit's SHA or a beginning of it; digits alone are a number while they are
 * few enough. */
static bool read_change(struct control_retest *q, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n > 0 && n <= NUMBER_MAX_CHARS && strspn(text, "0123456789") == n)
		return !parse_int64(text, &q->retest.number) && q->retest.number > 0;
	if (n < SHA_MIN_CHARS || n > SHA_CHARS || strspn(text, "0123456789abcdefABCDEF") != n)
		return false;
	q->sha = xstrdup(text);
	for (char *c = q->sha; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	q->retest.sha = q->sha;
	return true;
}

/* False: it has been answered. */
static bool read_accelerator(struct control_retest *q, const struct config *c, const char *name)
{
	char *why;

	if (!name)
		return true;
	if (!config_accelerator(c, name)) {
		why = control_unknown_accelerator(c, name);
		control_respond_error(q->request, ERR_NOT_FOUND, why);
		free(why);
		return false;
	}
	q->accelerator = xstrdup(name);
	q->retest.accelerator = q->accelerator;
	return true;
}

void control_on_retest(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_retest *q = xcalloc(1, sizeof(*q));
	json_t *asked = NULL;
	const char *body;
	bool is_read = false;
	size_t n;
	int rc;

	q->request = r;
	body = http_body(r, &n);
	if (json_parse(body, n, &asked, NULL) || !read_change(q, json_get_str(asked, "change")))
		control_respond_error(r, ERR_INVALID,
		    "change must be a pull request's number, or a commit's SHA or 7 digits of it");
	else
		is_read =
		    read_accelerator(q, c->daemon->config, json_get_str(asked, "accelerator"));
	json_decref(asked);
	if (!is_read) {
		end(q);
		return;
	}
	q->retest.done = retested;
	q->retest.owner = q;
	rc = dispatch_retest(c->daemon->dispatch, &q->retest);
	if (rc) {
		control_respond_error(r, rc, NULL);
		end(q);
	}
}
