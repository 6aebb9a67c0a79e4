#include "runners/callback_request.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/json.h"
#include "base/str.h"

enum { DELIVERY_ID_MAX = 64 };

static bool is_delivery_id(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-')
			return false;
	return n > 0 && n <= DELIVERY_ID_MAX;
}

static int read_delivery_id(const json_t *root, struct callback_request *ret, struct error *e)
{
	const json_t *v = json_object_get(root, "delivery_id");

	if (!v || json_is_null(v))
		return error_set(e, ERR_INVALID, "delivery_id is missing");
	if (!json_is_string(v) || !is_delivery_id(json_string_value(v)))
		return error_set(
		    e, ERR_INVALID, "delivery_id is not 1 to 64 letters, digits and '-'");
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

static void read_self_report(const json_t *root, struct callback_request *ret)
{
	const char *type = json_get_str(root, "event_type");
	char sha[DELIVERY_ID_MAX + 1];

	for (size_t i = 0; i <= strlen(ret->delivery_id); i++)
		sha[i] = (char)tolower((unsigned char)ret->delivery_id[i]);
	if ((!str_eq(type, "nightly") && !str_eq(type, "periodic")) || !is_sha1(sha))
		return;
	ret->is_self_report = true;
	memcpy(ret->delivery_id, sha, strlen(sha));
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
		read_self_report(root, ret);
	}
	if (!err && ret->is_self_report && ret->report.status != JOB_COMPLETED)
		err =
		    error_set(e, ERR_INVALID, "workflow.status must be completed in a self-report");
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
