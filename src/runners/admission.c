#include "runners/admission.h"

#include "base/alloc.h"
#include "runners/answer.h"

bool admit_open(struct runners *r, struct http_request *q)
{
	bool is_ending = r->is_closing || r->is_stopping;

	if (r->config && !is_ending)
		return true;
	answer_busy(r, q, NULL, is_ending ? ERR_CLOSING : ERR_BUSY);
	return false;
}

static void refuse_departed(struct runners *r, struct http_request *q, const char *accelerator)
{
	char *detail = xasprintf("the accelerator %s has left the registry", accelerator);

	answer_refused(
	    r, q, &(struct refusal){.status = 403, .detail = detail, .caller = accelerator});
	free(detail);
}

bool admit_token(
    struct runners *r, struct http_request *q, const char *token, struct credential *ret)
{
	int retry_after_s = 0;

	switch (
	    credentials_check(r->credentials, token, http_client_address(q), ret, &retry_after_s)) {
	case CREDENTIAL_GOOD:
		if (config_accelerator(r->config, ret->accelerator)) {
			http_note_authenticated(q);
			return true;
		}
		refuse_departed(r, q, ret->accelerator);
		break;
	case CREDENTIAL_WRONG:
		answer_refused(r, q,
		    &(struct refusal){
			.status = 401, .detail = "the token is not valid, or was revoked"});
		break;
	case CREDENTIAL_OVER_RATE:
		answer_refused(r, q,
		    &(struct refusal){
			.status = 429,
			.detail = "too many wrong tokens from this address",
			.retry_after_s = retry_after_s,
		    });
		break;
	case CREDENTIAL_UNREAD:
		answer_busy(r, q, NULL, ERR_BUSY);
		break;
	}
	return false;
}

const char *admit_bearer(struct runners *r, struct http_request *q)
{
	const char *token = bearer_token(q);

	if (!r->config || r->is_closing)
		answer_busy(r, q, NULL, r->is_closing ? ERR_CLOSING : ERR_BUSY);
	else if (token)
		return token;
	else
		answer_refused(r, q,
		    &(struct refusal){.status = 401, .detail = "Authorization: Bearer is missing"});
	return NULL;
}

bool admit_runner(struct runners *r, struct http_request *q, struct credential *ret)
{
	const char *token = bearer_token(q);

	if (!admit_open(r, q))
		return false;
	if (!token) {
		answer_refused(r, q,
		    &(struct refusal){.status = 401, .detail = "Authorization: Bearer is missing"});
		return false;
	}
	if (!admit_token(r, q, token, ret))
		return false;
	if (ret->kind == TOKEN_RUNNER)
		return true;
	answer_refused(r, q,
	    &(struct refusal){
		.status = 403,
		.detail = "an API token takes no work: a machine needs one of `runner add`",
		.caller = ret->accelerator,
	    });
	return false;
}
