#include "runners/lease_request.h"

#include <ctype.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/json.h"
#include "model/runner_protocol.h"

bool lease_id_is_valid(const char *id)
{
	size_t n = 0;

	for (; id[n]; n++)
		if (n == LEASE_ID_MAX_BYTES || !(isalnum((unsigned char)id[n]) || id[n] == '-'))
			return false;
	return n > 0;
}

/* NULL for a body that is empty. */
static int parse_object(const char *body, size_t n, json_t **ret, struct error *e)
{
	struct error why = {0};
	int err;

	*ret = NULL;
	if (n == 0)
		return 0;
	err = json_parse(body, n, ret, &why);
	if (err)
		return error_set(e, err, "the body is not JSON: %s", why.text);
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return error_set(e, ERR_INVALID, "the body is not a JSON object");
}

int lease_wait_parse(const char *body, size_t n, int *ret_wait_s, struct error *e)
{
	json_t *root, *wait;
	int err = parse_object(body, n, &root, e);

	*ret_wait_s = 0;
	if (err)
		return err;
	wait = json_object_get(root, "wait");
	if (wait && (!json_is_integer(wait) || json_integer_value(wait) < 0 ||
			json_integer_value(wait) > RENEW_WAIT_MAX_S))
		err = error_set(e, ERR_INVALID, "wait must be a whole number from 0 to %d",
		    (int)RENEW_WAIT_MAX_S);
	else
		*ret_wait_s = (int)json_integer_value(wait);
	json_decref(root);
	return err;
}

int lease_reason_parse(const char *body, size_t n, char **ret, struct error *e)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);
	json_t *root, *reason;
	int err = parse_object(body, n, &root, e);

	*ret = NULL;
	if (err)
		return err;
	reason = json_object_get(root, "reason");
	if (reason && !json_is_string(reason))
		err = error_set(e, ERR_INVALID, "reason must be text");
	if (!err) {
		escape_line(&line, reason ? json_string_value(reason) : "", LEASE_REASON_MAX_BYTES);
		*ret = xstrdup(buf_str(&line));
	}
	buf_release(&line);
	json_decref(root);
	return err;
}
