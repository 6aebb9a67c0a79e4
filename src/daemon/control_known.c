/* outpostctl known: the issues that explain failures of tests. */

#include "daemon/control.h"
#include "daemon/wire.h"
#include "model/plan.h"
#include "model/test_result.h"
#include "verdict/known_issues.h"
#include "web/web.h"

enum { PATTERN_MAX_BYTES = 400, DAY_MS = 24 * 3600 * 1000 };

struct known_request {
	struct control_request base;
	const char *pattern, *accelerator;
	char *url;
	int64_t until_ms;
	struct add_known add;
	struct remove_known remove;
	struct list_known list;
};

static void release_known_request(struct control_request *base)
{
	struct known_request *k = CONTAINER_OF(base, struct known_request, base);

	list_known_release(&k->list);
	free(k->url);
}

/* ---- add ---- */

/* A glob over SUITE/TEST. `*` matches within one part, so a pattern of one part without `**` would
 * match no test. */
static bool is_pattern(const char *s)
{
	if (!s || strlen(s) > PATTERN_MAX_BYTES || !glob_is_valid(s))
		return false;
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return strchr(s, '/') || strstr(s, "**");
}

/* "2026-12-01" means until the end of that day. Returns ERR_INVALID for anything but a date or an
 * RFC 3339 time. */
static int parse_until(const char *s, int64_t *ret_ms)
{
	if (strlen(s) != strlen("2026-12-01"))
		return rfc3339_parse(s, ret_ms);
	char *midnight = xasprintf("%sT00:00:00Z", s);
	int rc = rfc3339_parse(midnight, ret_ms);
	free(midnight);
	if (!rc)
		*ret_ms += DAY_MS;
	return rc;
}

static void on_known_added(struct store_op *op)
{
	struct known_request *k = CONTAINER_OF(op, struct known_request, add.op);

	if (!control_goes_on(&k->base, op->err, op->why.text))
		return;
	log_event(LOG_INFO, "known_added", LOG_I("known", k->add.id), LOG_S("test", k->pattern),
	    LOG_S("accelerator", k->accelerator), LOG_S("url", k->url));
	upkeep_on_known_issue(k->base.daemon->upkeep);
	control_answer(&k->base, json_pack("{s:I, s:o}", "id", (json_int_t)k->add.id, "until", json_time(k->until_ms)));
}

static int begin_known_add(struct control_request *base)
{
	struct known_request *k = CONTAINER_OF(base, struct known_request, base);
	const char *until = json_get_str(base->body, "until");
	int64_t now_ms = clock_wall_ms();

	base->release = release_known_request;
	k->pattern = json_get_str(base->body, "test");
	k->accelerator = json_get_str(base->body, "accelerator");
	k->url = report_url(base->body, "url");
	if (!is_pattern(k->pattern))
		return error_set(
		    &base->why, ERR_INVALID, "test must be SUITE/TEST, with * for one part and ** for several");
	if (k->accelerator && !config_accelerator(base->daemon->config, k->accelerator))
		return control_unknown_accelerator(base, k->accelerator);
	if (!k->url || !k->url[strlen("https://")])
		return error_set(&base->why, ERR_INVALID, "the issue must be an https URL");
	if (until && parse_until(until, &k->until_ms))
		return error_set(
		    &base->why, ERR_INVALID, "the date must be YYYY-MM-DD (the end of that day, UTC) or RFC 3339");
	if (until && k->until_ms <= now_ms)
		return error_set(&base->why, ERR_INVALID, "the date has passed");
	k->add = (struct add_known){
	    .op.done = on_known_added,
	    .pattern = k->pattern,
	    .accelerator = k->accelerator,
	    .url = k->url,
	    .until_ms = k->until_ms,
	    .now_ms = now_ms,
	};
	return store_add_known(base->daemon->store, &k->add);
}

/* ---- remove and list ---- */

static void on_known_removed(struct store_op *op)
{
	struct known_request *k = CONTAINER_OF(op, struct known_request, remove.op);

	if (!control_goes_on(&k->base, op->err, op->err == ERR_NOT_FOUND ? "no such known issue" : op->why.text))
		return;
	log_event(LOG_INFO, "known_removed", LOG_I("known", k->remove.id));
	control_answer(&k->base, json_pack("{s:I}", "id", (json_int_t)k->remove.id));
}

static int begin_known_remove(struct control_request *base)
{
	struct known_request *k = CONTAINER_OF(base, struct known_request, base);

	k->remove = (struct remove_known){
	    .op.done = on_known_removed, .id = json_get_int(base->body, "id", 0), .now_ms = clock_wall_ms()};
	return store_remove_known(base->daemon->store, &k->remove);
}

static void on_known_listed(struct store_query *q)
{
	struct known_request *k = CONTAINER_OF(q, struct known_request, list.q);

	if (control_goes_on(&k->base, q->err, q->why.text))
		control_answer(&k->base, web_known_json(&k->list));
}

static int begin_known_list(struct control_request *base)
{
	struct known_request *k = CONTAINER_OF(base, struct known_request, base);

	base->release = release_known_request;
	k->list.q.done = on_known_listed;
	k->list.now_ms = clock_wall_ms();
	return store_list_known(base->daemon->store, &k->list);
}

const struct control_route CONTROL_KNOWN[] = {
    {"GET", "/control/known", sizeof(struct known_request), begin_known_list},
    {"POST", "/control/known", sizeof(struct known_request), begin_known_add},
    {"POST", "/control/known/remove", sizeof(struct known_request), begin_known_remove},
    {.method = NULL},
};
