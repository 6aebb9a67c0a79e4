/* outpostctl known: which red tests an issue explains. */
#include "daemon/control_known.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/known_expiry.h"
#include "model/test_result.h"
#include "model/trigger.h"
#include "store/known_issues.h"
#include "web/known.h"

enum { PATTERN_MAX_BYTES = 400, DAY_MS = 24 * 3600 * 1000 };

struct known_request {
	struct http_request *request;
	struct daemon *daemon;
	char *pattern, *accelerator, *url;
	int64_t until_ms;
	struct add_known add;
	struct remove_known remove;
	struct list_known list;
};

static void end(struct known_request *k)
{
	list_known_release(&k->list);
	free(k->pattern);
	free(k->accelerator);
	free(k->url);
	free(k);
}

static void fail(struct known_request *k, int err, const char *text)
{
	control_respond_error(k->request, err, text);
	end(k);
}

static struct known_request *begin(struct http_request *r, struct control *c)
{
	struct known_request *k = xcalloc(1, sizeof(*k));

	k->request = r;
	k->daemon = c->daemon;
	return k;
}

/* The body; NULL: answered. */
static json_t *body_of(struct http_request *r)
{
	json_t *asked;
	size_t n;
	const char *body = http_body(r, &n);

	if (json_parse(body, n, &asked, NULL) == 0)
		return asked;
	control_respond_error(r, ERR_INVALID, "the body is not JSON");
	return NULL;
}

/* ---- add ---- */

static bool is_pattern(const char *s)
{
	if (!s || strlen(s) > PATTERN_MAX_BYTES || !glob_is_valid(s))
		return false;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	/* `*` stays within a part, so what has one part is no test's name */
	return strchr(s, '/') || strstr(s, "**");
}

/* "2026-12-01" is good until that day ends; ERR_INVALID. */
static int parse_until(const char *s, int64_t *ret_ms)
{
	char *midnight;
	int rc;

	if (strlen(s) != strlen("2026-12-01"))
		return rfc3339_parse(s, ret_ms);
	midnight = xasprintf("%sT00:00:00Z", s);
	rc = rfc3339_parse(midnight, ret_ms);
	free(midnight);
	if (!rc)
		*ret_ms += DAY_MS;
	return rc;
}

static int read_until(struct known_request *k, const json_t *asked, char **ret_why)
{
	const char *until = json_get_str(asked, "until");

	if (!until)
		return 0;
	if (parse_until(until, &k->until_ms)) {
		*ret_why = xstrdup("the date is YYYY-MM-DD (until that day ends, UTC) or RFC 3339");
		return ERR_INVALID;
	}
	if (k->until_ms > clock_wall_ms())
		return 0;
	*ret_why = xstrdup("the date has passed");
	return ERR_INVALID;
}

static int read_asked(struct known_request *k, const json_t *asked, char **ret_why)
{
	k->pattern = xstrdup_or_null(json_get_str(asked, "test"));
	k->accelerator = xstrdup_or_null(json_get_str(asked, "accelerator"));
	k->url = report_url(asked, "url");
	if (!is_pattern(k->pattern)) {
		*ret_why = xstrdup("a test is SUITE/TEST, with * for a part and ** for several");
		return ERR_INVALID;
	}
	if (k->accelerator && !config_accelerator(k->daemon->config, k->accelerator)) {
		*ret_why = control_unknown_accelerator(k->daemon->config, k->accelerator);
		return ERR_NOT_FOUND;
	}
	if (!k->url || !k->url[strlen("https://")]) {
		*ret_why = xstrdup("the issue is an https URL");
		return ERR_INVALID;
	}
	return read_until(k, asked, ret_why);
}

static void on_added(struct store_op *op)
{
	struct known_request *k = CONTAINER_OF(op, struct known_request, add.op);
	json_t *v;

	if (op->err) {
		fail(k, op->err, op->why.text);
		return;
	}
	log_event(LOG_INFO, "known_added", LOG_I("known", k->add.id), LOG_S("test", k->pattern),
	    LOG_S("accelerator", k->accelerator), LOG_S("url", k->url));
	known_expiry_look(k->daemon->known_expiry);
	v = json_object();
	json_set_int(v, "id", k->add.id);
	json_set_time(v, "until", k->until_ms);
	control_respond(k->request, 200, v);
	end(k);
}

void control_on_known_add(struct http_request *r, void *owner)
{
	struct known_request *k;
	json_t *asked = body_of(r);
	char *why = NULL;
	int err;

	if (!asked)
		return;
	k = begin(r, owner);
	err = read_asked(k, asked, &why);
	json_decref(asked);
	k->add = (struct add_known){
	    .op.done = on_added,
	    .pattern = k->pattern,
	    .accelerator = k->accelerator,
	    .url = k->url,
	    .until_ms = k->until_ms,
	    .now_ms = clock_wall_ms(),
	};
	if (!err)
		err = store_add_known(k->daemon->store, &k->add);
	if (err)
		fail(k, err, why);
	free(why);
}

/* ---- remove ---- */

static void on_removed(struct store_op *op)
{
	struct known_request *k = CONTAINER_OF(op, struct known_request, remove.op);
	json_t *v;

	if (op->err) {
		fail(k, op->err, op->err == ERR_NOT_FOUND ? "no such known issue" : op->why.text);
		return;
	}
	log_event(LOG_INFO, "known_removed", LOG_I("known", k->remove.id));
	v = json_object();
	json_set_int(v, "id", k->remove.id);
	control_respond(k->request, 200, v);
	end(k);
}

void control_on_known_remove(struct http_request *r, void *owner)
{
	struct known_request *k;
	json_t *asked = body_of(r);
	int err;

	if (!asked)
		return;
	k = begin(r, owner);
	k->remove = (struct remove_known){
	    .op.done = on_removed,
	    .id = json_get_int(asked, "id", 0),
	    .now_ms = clock_wall_ms(),
	};
	json_decref(asked);
	err = store_remove_known(k->daemon->store, &k->remove);
	if (err)
		fail(k, err, NULL);
}

/* ---- list ---- */

static void on_listed(struct store_query *q)
{
	struct known_request *k = CONTAINER_OF(q, struct known_request, list.q);

	if (q->err) {
		fail(k, q->err, q->why.text);
		return;
	}
	control_respond(k->request, 200, known_list_json(&k->list));
	end(k);
}

void control_on_known(struct http_request *r, void *owner)
{
	struct known_request *k = begin(r, owner);
	int err;

	k->list.q.done = on_listed;
	k->list.now_ms = clock_wall_ms();
	err = store_list_known(k->daemon->store, &k->list);
	if (err)
		fail(k, err, NULL);
}
