/* Two requests of machines: one hands work back, and one asks for the status. */
#include "runners/leases.h"

#include "model/runner_protocol.h"
#include "store/claims.h"
#include "store/leases.h"

bool lease_id_is_valid(const char *id)
{
	size_t n = 0;

	for (; id[n]; n++)
		if (n == LEASE_ID_MAX_BYTES || !(isalnum((unsigned char)id[n]) || id[n] == '-'))
			return false;
	return n > 0;
}

int lease_wait_parse(const char *body, size_t n, int *ret_wait_s, struct error *e)
{
	json_t *root = NULL, *wait;
	int err = n ? body_object(body, n, &root, e) : 0;

	*ret_wait_s = 0;
	if (err)
		return err;
	wait = json_object_get(root, "wait");
	if (wait &&
	    (!json_is_integer(wait) || json_integer_value(wait) < 0 || json_integer_value(wait) > RENEW_WAIT_MAX_S))
		err = error_set(e, ERR_INVALID, "wait must be a whole number from 0 to %d", (int)RENEW_WAIT_MAX_S);
	else
		*ret_wait_s = (int)json_integer_value(wait);
	json_decref(root);
	return err;
}

int lease_reason_parse(const char *body, size_t n, char **ret, struct error *e)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2);
	json_t *root = NULL, *reason;
	int err = n ? body_object(body, n, &root, e) : 0;

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

enum { RETURN_BODY_MAX_BYTES = 4096 };

struct handback {
	struct return_lease op;
	struct arena texts; /* those of op */
	struct runners *runners;
	struct http_request *request; /* NULL: the client left, or no client asked */
	bool is_unclaimed;            /* no machine took the lease: not counted as returned */
};

static void end_handback(struct handback *h, int err)
{
	struct runners *r = h->runners;
	const struct return_lease *op = &h->op;

	if (!err && !h->is_unclaimed) {
		r->counters.n_leases_returned++;
		log_event(LOG_INFO, "lease_returned", LOG_S("lease", op->lease_id),
		    LOG_S("accelerator", op->accelerator), LOG_S("machine", op->machine), LOG_S("why", op->reason));
	}
	if (!err)
		answer_json_text(h->request, 200, xstrdup("{\"ok\":true}"));
	else if (err == ERR_NOT_FOUND)
		refuse_request(r, h->request, 404, NO_LEASE, op->accelerator);
	else
		answer_busy(r, h->request, op->accelerator, err);
	arena_release(&h->texts);
	free(h);
	runners_let_go(r);
}

static void on_returned(struct store_op *op) { end_handback(CONTAINER_OF(op, struct handback, op.op), op->err); }

void lease_hand_back(struct runners *r, struct http_request *q, const char *lease_id, const char *accelerator,
    const char *machine, const char *reason, int64_t granted_until_ms)
{
	struct handback *h = xcalloc(1, sizeof(*h));

	*h = (struct handback){.runners = r, .request = q, .is_unclaimed = !q};
	h->op = (struct return_lease){
	    .op.done = on_returned,
	    .lease_id = arena_strdup(&h->texts, lease_id),
	    .accelerator = arena_strdup(&h->texts, accelerator),
	    .machine = arena_strdup(&h->texts, machine),
	    .reason = arena_strdup(&h->texts, reason),
	    .now_ms = clock_wall_ms(),
	    .granted_until_ms = granted_until_ms,
	};
	runners_hold(r);
	int err = store_return_lease(r->store, &h->op);
	if (err)
		end_handback(h, err);
	else if (q)
		forget_gone_client(&h->request);
}

static void on_return(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct credential who;
	struct error why = {0};
	char *reason = NULL;
	size_t n;

	if (!admit_runner(r, q, &who))
		return;
	const char *body = http_body(q, &n);
	if (lease_reason_parse(body, n, &reason, &why))
		refuse_request(r, q, 400, why.text, who.accelerator);
	else if (!lease_id_is_valid(http_segment(q, 0)))
		refuse_request(r, q, 404, NO_LEASE, who.accelerator);
	else
		lease_hand_back(r, q, http_segment(q, 0), who.accelerator, who.name, reason, 0);
	free(reason);
}

struct status_request {
	struct runners *runners;
	struct http_request *request; /* NULL: the client left */
	struct config *config;        /* keeps the texts that `count` borrows */
	const struct accelerator *accelerator;
	char *machine;
	struct count_pull_work count;
	struct pull_work work[RUNNER_NEEDS_MAX];
};

static void end_status_request(struct status_request *a)
{
	struct runners *r = a->runners;

	config_unref(a->config);
	FREE_ALL(a->machine, a);
	runners_let_go(r);
}

static void on_work_counted(struct store_query *q)
{
	struct status_request *a = CONTAINER_OF(q, struct status_request, count.q);

	if (a->request)
		http_on_gone(a->request, NULL);
	if (a->request && q->err) {
		answer_busy(a->runners, a->request, a->accelerator->name, q->err);
	} else if (a->request) {
		struct runner_need needs[RUNNER_NEEDS_MAX];
		struct runner_status s = {
		    .version = (char *)(uintptr_t)OUTPOST_VERSION,
		    .time_ms = clock_wall_ms(),
		    .name = a->machine,
		    .accelerator = a->accelerator->name,
		    .runners = needs,
		    .n_runners = a->count.n,
		};
		size_t n = 0;

		for (size_t i = 0; i < a->accelerator->n_runners && n < a->count.n; i++) {
			const struct runner *x = &a->accelerator->runners[i];

			if (x->kind != RUNNER_PULL)
				continue;
			needs[n] = (struct runner_need){
			    .name = x->name,
			    .labels = x->labels,
			    .max_parallel = x->max_parallel,
			    .n_waiting = a->work[n].n_waiting,
			    .n_active = a->work[n].n_active,
			};
			n++;
		}
		answer_json_text(a->request, 200, runner_status_text(&s));
	}
	end_status_request(a);
}

static void on_status_request(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct credential who;

	if (!admit_runner(r, q, &who))
		return;
	struct status_request *a = xcalloc(1, sizeof(*a));
	a->runners = r;
	a->request = q;
	a->config = config_ref(r->config);
	a->accelerator = config_accelerator(a->config, who.accelerator);
	a->machine = xstrdup(who.name);
	a->count = (struct count_pull_work){
	    .q.done = on_work_counted,
	    .accelerator = a->accelerator->name,
	    .now_ms = clock_wall_ms(),
	    .list = a->work,
	};
	for (size_t i = 0; i < a->accelerator->n_runners && a->count.n < RUNNER_NEEDS_MAX; i++)
		if (a->accelerator->runners[i].kind == RUNNER_PULL)
			a->work[a->count.n++].runner = a->accelerator->runners[i].name;
	runners_hold(r);
	forget_gone_client(&a->request);
	int err = store_count_pull_work(r->store, &a->count);
	if (!err)
		return;
	http_on_gone(q, NULL);
	answer_busy(r, q, a->accelerator->name, err);
	end_status_request(a);
}

void machine_add_routes(struct runners *r, struct http_server *h)
{
	machine_route_add(r, h, "/api/v1/runner/leases/{lease}/return", RETURN_BODY_MAX_BYTES, on_return);
	http_server_route(h, &(struct http_route){
				 .method = "GET",
				 .pattern = "/api/v1/runner/status",
				 .on_request = on_status_request,
				 .owner = r,
			     });
}
