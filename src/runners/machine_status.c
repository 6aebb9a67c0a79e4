#include "runners/machine_status.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/version.h"
#include "model/runner_protocol.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "store/leases.h"

struct asked {
	struct runners *runners;
	struct http_request *request; /* NULL: its client has gone */
	struct config *config;        /* what the count borrows from */
	const struct accelerator *accelerator;
	char *machine;
	struct count_pull_work count;
	struct pull_work work[RUNNER_NEEDS_MAX];
};

static void on_gone(struct http_request *q)
{
	struct asked *a = http_user(q);

	a->request = NULL;
}

static void end(struct asked *a)
{
	struct runners *r = a->runners;

	config_unref(a->config);
	free(a->machine);
	free(a);
	runners_let_go(r);
}

static void answer(struct asked *a)
{
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
	char *text;

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
	text = runner_status_text(&s);
	http_respond(a->request, 200, "application/json", NULL, text, strlen(text));
	free(text);
}

static void on_counted(struct store_query *q)
{
	struct asked *a = CONTAINER_OF(q, struct asked, count.q);

	if (a->request)
		http_on_gone(a->request, NULL);
	if (a->request && q->err)
		answer_busy(a->runners, a->request, a->accelerator->name, q->err);
	else if (a->request)
		answer(a);
	end(a);
}

static void on_request(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct credential who;
	struct asked *a;
	int err;

	if (!admit_runner(r, q, &who))
		return;
	a = xcalloc(1, sizeof(*a));
	a->runners = r;
	a->request = q;
	a->config = config_ref(r->config);
	a->accelerator = config_accelerator(a->config, who.accelerator);
	a->machine = xstrdup(who.name);
	a->count = (struct count_pull_work){
	    .q.done = on_counted,
	    .accelerator = a->accelerator->name,
	    .now_ms = clock_wall_ms(),
	    .list = a->work,
	};
	for (size_t i = 0; i < a->accelerator->n_runners && a->count.n < RUNNER_NEEDS_MAX; i++)
		if (a->accelerator->runners[i].kind == RUNNER_PULL)
			a->work[a->count.n++].runner = a->accelerator->runners[i].name;
	runners_hold(r);
	http_set_user(q, a);
	http_on_gone(q, on_gone);
	err = store_count_pull_work(r->store, &a->count);
	if (!err)
		return;
	http_on_gone(q, NULL);
	answer_busy(r, q, a->accelerator->name, err);
	end(a);
}

void machine_status_add_route(struct runners *r, struct http_server *h)
{
	http_server_route(h, &(struct http_route){
				 .method = "GET",
				 .pattern = "/api/v1/runner/status",
				 .on_request = on_request,
				 .owner = r,
			     });
}
