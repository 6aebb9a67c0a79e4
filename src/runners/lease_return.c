#include "runners/lease_return.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "runners/lease_request.h"
#include "store/leases.h"

enum { RETURN_BODY_MAX_BYTES = 4096 };

struct handback {
	struct return_lease op;
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	char *lease_id, *accelerator, *machine, *reason;
};

static void handback_free(struct handback *h)
{
	free(h->lease_id);
	free(h->accelerator);
	free(h->machine);
	free(h->reason);
	free(h);
}

static void refuse_unknown(struct runners *r, struct http_request *q, const char *accelerator)
{
	answer_refused(r, q,
	    &(struct refusal){.status = 404, .detail = "no such lease", .caller = accelerator});
}

static void on_returned(struct store_op *op)
{
	static const char OK[] = "{\"ok\":true}";
	struct handback *h = CONTAINER_OF(op, struct handback, op.op);
	struct runners *r = h->runners;

	if (!op->err) {
		r->counters.n_leases_returned++;
		log_event(LOG_INFO, "lease_returned", LOG_S("lease", h->lease_id),
		    LOG_S("accelerator", h->accelerator), LOG_S("machine", h->machine),
		    LOG_S("why", h->reason));
	}
	if (h->request && !op->err)
		http_respond(h->request, 200, "application/json", NULL, OK, sizeof(OK) - 1);
	else if (h->request && op->err == ERR_NOT_FOUND)
		refuse_unknown(r, h->request, h->accelerator);
	else if (h->request)
		answer_busy(r, h->request, h->accelerator, op->err);
	handback_free(h);
	runners_let_go(r);
}

static void on_gone(struct http_request *q)
{
	struct handback *h = http_user(q);

	h->request = NULL;
}

static void hand_back(
    struct runners *r, struct http_request *q, const struct credential *who, char *reason)
{
	struct handback *h = xcalloc(1, sizeof(*h));
	int err;

	h->runners = r;
	h->request = q;
	h->lease_id = xstrdup(http_segment(q, 0));
	h->accelerator = xstrdup(who->accelerator);
	h->machine = xstrdup(who->name);
	h->reason = reason;
	h->op = (struct return_lease){
	    .op.done = on_returned,
	    .lease_id = h->lease_id,
	    .accelerator = h->accelerator,
	    .machine = h->machine,
	    .reason = h->reason,
	    .now_ms = clock_wall_ms(),
	};
	err = store_return_lease(r->store, &h->op);
	if (err) {
		answer_busy(r, q, h->accelerator, err);
		handback_free(h);
		return;
	}
	runners_hold(r);
	http_set_user(q, h);
	http_on_gone(q, on_gone);
}

/* Answers a bad token before the body is read. */
static void on_headers(struct http_request *q, void *owner)
{
	struct credential who;

	admit_runner(owner, q, &who);
}

static void on_request(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct credential who;
	struct error why = {0};
	const char *body;
	char *reason;
	size_t n;
	int err;

	if (!admit_runner(r, q, &who))
		return;
	body = http_body(q, &n);
	err = lease_reason_parse(body, n, &reason, &why);
	if (err) {
		answer_refused(r, q,
		    &(struct refusal){
			.status = 400, .detail = why.text, .caller = who.accelerator});
	} else if (!lease_id_is_valid(http_segment(q, 0))) {
		refuse_unknown(r, q, who.accelerator);
		free(reason);
	} else {
		hand_back(r, q, &who, reason);
	}
}

void lease_return_add_route(struct runners *r, struct http_server *h)
{
	http_server_route(h, &(struct http_route){
				 .method = "POST",
				 .pattern = "/api/v1/runner/leases/{lease}/return",
				 .max_body_bytes = RETURN_BODY_MAX_BYTES,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = on_headers,
				 .on_request = on_request,
				 .owner = r,
			     });
}
