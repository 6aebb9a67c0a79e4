/* What a head's fields say together: where the body ends above all, for a body whose end
 * two readers see in different places is a second request that nobody checked. */
#include "http/head.h"

#include <string.h>
#include <strings.h>

enum single {
	SINGLE_HOST,
	SINGLE_LENGTH,
	SINGLE_CODING,
	SINGLE_EXPECT,
	SINGLE_AUTHORIZATION,
	SINGLE_TYPE,
	SINGLE_RANGE,
	SINGLE_SIGNATURE,
	SINGLE_EVENT,
	SINGLE_DELIVERY,
	N_SINGLES
};

/* Headers that mean nothing, or something dangerous, when they come twice. */
static const struct {
	const char *name;
	const char *why_twice;
} SINGLES[N_SINGLES] = {
    [SINGLE_HOST] = {"host", "more than one Host"},
    [SINGLE_LENGTH] = {"content-length", "more than one Content-Length"},
    [SINGLE_CODING] = {"transfer-encoding", "more than one Transfer-Encoding"},
    [SINGLE_EXPECT] = {"expect", "more than one Expect"},
    [SINGLE_AUTHORIZATION] = {"authorization", "more than one Authorization"},
    [SINGLE_TYPE] = {"content-type", "more than one Content-Type"},
    [SINGLE_RANGE] = {"range", "more than one Range"},
    [SINGLE_SIGNATURE] = {"x-hub-signature-256", "more than one X-Hub-Signature-256"},
    [SINGLE_EVENT] = {"x-github-event", "more than one X-GitHub-Event"},
    [SINGLE_DELIVERY] = {"x-github-delivery", "more than one X-GitHub-Delivery"},
};

static int collect_singles(
    const struct http_head *h, const char *values[N_SINGLES], struct http_refusal *refusal)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		const char *name = h->text + h->fields[i].name;

		for (int k = 0; k < N_SINGLES; k++) {
			/* The first letter, without case, rules out nearly all. */
			if ((name[0] | 0x20) != SINGLES[k].name[0] ||
			    strcasecmp(name, SINGLES[k].name) != 0)
				continue;
			if (values[k])
				return http_refuse(refusal, 400, SINGLES[k].why_twice);
			values[k] = h->text + h->fields[i].value;
			break;
		}
	}
	return 0;
}

static int check_host(const struct http_head *h, const char *host, struct http_refusal *refusal)
{
	if (!host)
		return h->minor == 1 ? http_refuse(refusal, 400, "no Host") : 0;
	return http_host_is_plain(host, strlen(host)) ? 0
						      : http_refuse(refusal, 400, "malformed Host");
}

/* Digits only: no sign, no list, no space inside, nothing that overflows. */
static int parse_length(const char *s, int64_t *ret)
{
	int64_t value = 0;

	if (*s == '\0')
		return ERR_INVALID;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || value > (INT64_MAX - 9) / 10)
			return ERR_INVALID;
		value = value * 10 + (*s - '0');
	}
	*ret = value;
	return 0;
}

static int check_body(
    struct http_head *h, const char *length, const char *coding, struct http_refusal *refusal)
{
	if (coding && length)
		return http_refuse(refusal, 400, "Content-Length beside Transfer-Encoding");
	if (coding && h->minor == 0)
		return http_refuse(refusal, 400, "Transfer-Encoding in HTTP/1.0");
	if (coding && strcasecmp(coding, "chunked") != 0)
		return http_refuse(refusal, 400, "bad Transfer-Encoding");
	h->is_chunked = coding != NULL;
	h->has_length = length != NULL;
	if (length && parse_length(length, &h->content_length))
		return http_refuse(refusal, 400, "bad Content-Length");
	return 0;
}

int http_framing_check(struct http_head *h, struct http_refusal *refusal)
{
	const char *values[N_SINGLES] = {NULL};
	int rc = collect_singles(h, values, refusal);

	if (rc)
		return rc;
	rc = check_host(h, values[SINGLE_HOST], refusal);
	if (rc)
		return rc;
	rc = check_body(h, values[SINGLE_LENGTH], values[SINGLE_CODING], refusal);
	if (rc)
		return rc;
	/* HTTP/1.0 has no interim answers: RFC 9110 10.1.1 has the field ignored there. */
	if (values[SINGLE_EXPECT] && h->minor == 1) {
		if (strcasecmp(values[SINGLE_EXPECT], "100-continue") != 0)
			return http_refuse(refusal, 417, "unknown expectation");
		h->expects_continue = true;
	}
	return 0;
}
