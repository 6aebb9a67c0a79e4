/* outpostctl status: what the store knows, and what only this process does. */
#include "base/alloc.h"
#include "base/clock.h"
#include "daemon/control_identities.h"
#include "daemon/control_internal.h"
#include "daemon/registry_status.h"
#include "daemon/runner_status.h"

static json_t *publish_json(const struct daemon *d)
{
	struct publish_counters c;
	json_t *v = json_object();

	publish_read_counters(d->publish, &c);
	json_set_int(v, "created", c.n_created);
	json_set_int(v, "edited", c.n_edited);
	json_set_str(v, "last_error", *c.last_error ? c.last_error : NULL);
	json_set_time(v, "last_error_at", c.last_error_wall_ms);
	return v;
}

static json_t *github_json(const struct daemon *d)
{
	struct github_stats s;
	json_t *v = json_object();

	github_read_stats(d->github, &s);
	json_set_str(v, "bot", github_bot_login(d->github));
	json_set_int(v, "requests", s.n_requests);
	json_set_int(v, "rate_limited", s.n_rate_limited);
	json_set_int(v, "failures", s.n_failures);
	json_set_int(v, "in_flight", s.n_in_flight);
	json_set_int(v, "waiting", s.n_waiting);
	return v;
}

static json_t *config_json(const struct daemon *d)
{
	json_t *v = json_object();

	json_set_str(v, "file", d->config_path);
	json_set_time(v, "loaded_at", d->config_loaded_wall_ms);
	json_set_str(v, "refused", d->config_error);
	json_set_time(v, "refused_at", d->config_error ? d->config_error_wall_ms : 0);
	return v;
}

struct status_answer {
	struct control_request *request;
	json_t *status;
	struct list_identities identities;
};

static void answer(struct status_answer *a, int err)
{
	if (err) {
		control_respond_error(a->request->request, err, NULL);
		json_decref(a->status);
	} else {
		control_respond(a->request->request, 200, a->status);
	}
	list_identities_release(&a->identities);
	control_end(a->request);
	free(a);
}

static void identities_read(struct store_query *q)
{
	struct status_answer *a = CONTAINER_OF(q, struct status_answer, identities.q);

	if (!q->err)
		json_object_set_new(
		    a->status, "refused_identities", identities_json(&a->identities));
	answer(a, q->err);
}

static void accelerators_read(int err, json_t *list, void *owner)
{
	struct status_answer *a = owner;

	if (!err) {
		json_object_set_new(a->status, "accelerator_list", list);
		a->identities.only_refused = true;
		a->identities.q.done = identities_read;
		err = store_list_identities(a->request->daemon->store, &a->identities);
		if (!err)
			return;
	}
	answer(a, err);
}

static void status_read(int err, json_t *status, void *owner)
{
	struct control_request *q = owner;
	struct daemon *d = q->daemon;
	struct dispatch_counters dispatch;
	struct status_answer *a;

	if (err) {
		control_respond_error(q->request, err, NULL);
		control_end(q);
		return;
	}
	dispatch_read_counters(d->dispatch, &dispatch);
	json_set_str(status, "address", d->address);
	json_set_time(status, "last_reconcile", dispatch.last_reconcile_wall_ms);
	json_object_set_new(status, "comments", publish_json(d));
	json_object_set_new(status, "github", github_json(d));
	json_object_set_new(status, "config", config_json(d));
	registry_status_add(status, d);
	runner_status_add(status, d);
	a = xcalloc(1, sizeof(*a));
	*a = (struct status_answer){.request = q, .status = status};
	web_accelerators(d->web, accelerators_read, a);
}

void control_on_status(struct http_request *r, void *owner)
{
	struct control *c = owner;

	web_status(c->daemon->web, status_read, control_begin(r, c));
}
