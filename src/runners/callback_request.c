#include "runners/callback_request.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/json.h"
#include "base/str.h"

enum { DELIVERY_ID_MAX = 128 };

static bool is_delivery_id(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)s[i]))
			return false;
	return n > 0 && n <= DELIVERY_ID_MAX;
}

static int read_delivery_id(const json_t *root, struct callback_request *ret, struct error *e)
{
	const json_t *v = json_object_get(root, "delivery_id");

	if (!v || json_is_null(v))
		return error_set(e, ERR_INVALID, "delivery_id is missing");
	if (!json_is_string(v) || !is_delivery_id(json_string_value(v)))
		return error_set(e, ERR_INVALID, "delivery_id is not 1 to %d printable characters",
		    DELIVERY_ID_MAX);
	ret->delivery_id = xstrdup(json_string_value(v));
	return 0;
}

/* base/id.h: 26 characters of base32. */
static bool is_dispatch_id(const char *s)
{
	return strlen(s) == ID_BYTES - 1 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz234567") == ID_BYTES - 1;
}

static void read_dispatch_id(const json_t *root, struct callback_request *ret)
{
	const json_t *const places[] = {
	    json_at(root, "outpost", "dispatch_id", NULL),
	    json_at(root, "client_payload", "outpost", "dispatch_id", NULL),
	    json_at(root, "payload", "outpost", "dispatch_id", NULL),
	};

	for (size_t i = 0; i < ARRAY_LEN(places) && !ret->dispatch_id; i++) {
		const char *id = json_string_value(places[i]);

		if (id && is_dispatch_id(id))
			ret->dispatch_id = xstrdup(id);
	}
}

/* CRCR's own order: a vendor whose ids are no commits names the commit elsewhere. */
static void read_nightly(const json_t *root, struct callback_request *ret)
{
	const char *type = json_get_str(root, "event_type");
	const json_t *const places[] = {
	    json_object_get(root, "delivery_id"),
	    json_object_get(root, "pytorch_head_sha"),
	    json_at(root, "payload", "head_sha", NULL),
	    json_at(root, "payload", "after", NULL),
	    json_at(root, "payload", "pull_request", "head", "sha", NULL),
	};

	ret->is_nightly = str_eq(type, "nightly") || str_eq(type, "periodic");
	for (size_t i = 0; ret->is_nightly && i < ARRAY_LEN(places); i++) {
		const char *text = json_string_value(places[i]);
		char sha[sizeof(ret->tested_sha)] = "";

		if (!text || strlen(text) != sizeof(sha) - 1)
			continue;
		for (size_t k = 0; k < sizeof(sha); k++)
			sha[k] = (char)tolower((unsigned char)text[k]);
		if (!is_sha1(sha))
			continue;
		memcpy(ret->tested_sha, sha, sizeof(sha));
		return;
	}
}

bool callback_request_is_self_report(const struct callback_request *r)
{
	return r->is_nightly && strcasecmp(r->delivery_id, r->tested_sha) == 0;
}

static int parse_object(const char *body, size_t n, json_t **ret, struct error *e)
{
	struct error why = {0};
	int err = json_parse(body, n, ret, &why);

	if (err)
		return error_set(e, err, "the body is not JSON: %s", why.text);
	if (!json_is_object(*ret))
		return error_set(e, ERR_INVALID, "the body is not a JSON object");
	return 0;
}

static int read_workflow(const json_t *root, struct callback_request *ret, struct error *e)
{
	const json_t *workflow = json_object_get(root, "workflow");

	if (!workflow || json_is_null(workflow))
		return error_set(e, ERR_INVALID, "workflow is missing");
	if (!json_is_object(workflow))
		return error_set(e, ERR_INVALID, "workflow is not an object");
	return job_report_parse(workflow, &ret->report, e);
}

int callback_request_parse(
    const char *body, size_t n, struct callback_request *ret, struct error *e)
{
	json_t *root = NULL;
	int err;

	*ret = (struct callback_request){0};
	err = parse_object(body, n, &root, e);
	if (!err)
		err = read_delivery_id(root, ret, e);
	if (!err)
		err = read_workflow(root, ret, e);
	if (!err) {
		read_dispatch_id(root, ret);
		read_nightly(root, ret);
	}
	json_decref(root);
	return err;
}

int callback_request_parse_workflow(
    const char *body, size_t n, struct callback_request *ret, struct error *e)
{
	json_t *root = NULL;
	int err;

	*ret = (struct callback_request){0};
	err = parse_object(body, n, &root, e);
	if (!err)
		err = job_report_parse(root, &ret->report, e);
	json_decref(root);
	return err;
}

void callback_request_release(struct callback_request *r)
{
	free(r->delivery_id);
	free(r->dispatch_id);
	job_report_release(&r->report);
	*r = (struct callback_request){0};
}
