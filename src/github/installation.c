/* Which installation speaks for a repository. A "not installed" is remembered for a short
 * while only: the vendor who reads it on the accelerator's page installs the App and tries
 * again. */
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "github/github_internal.h"

enum {
	GOOD_MS = 60 * 60 * 1000,
	NOT_THERE_MS = 60 * 1000,
};

static struct installation *installation_new(struct github *g, const char *repository)
{
	struct installation *i = xcalloc(1, sizeof(*i));

	i->g = g;
	i->repository = xstrdup(repository);
	TAILQ_INIT(&i->waiting);
	i->next = g->installations;
	g->installations = i;
	return i;
}

static struct installation *installation_of(struct github *g, const char *repository)
{
	struct installation *i = g->installations;

	while (i && strcasecmp(i->repository, repository) != 0)
		i = i->next;
	return i ? i : installation_new(g, repository);
}

static void give_to_waiting(struct installation *i)
{
	struct token *t;

	while ((t = TAILQ_FIRST(&i->waiting))) {
		TAILQ_REMOVE(&i->waiting, t, at);
		token_on_installation(t, i);
	}
}

static void on_answer(struct github_call *call);

static void ask(struct installation *i)
{
	i->is_asking = true;
	i->generation = i->g->generation;
	i->call.done = on_answer;
	request_start(i->g, &i->call,
	    &(struct request_spec){
		.access = ACCESS_APP,
		.what = "looking for the App's installation",
		.repository = i->repository,
		.method = "GET",
		.path = xasprintf("/repos/%s/installation", i->repository),
		.answer = ANSWER_OBJECT,
	    });
}

static void read_answer(struct installation *i)
{
	const struct github_result *result = &i->call.result;
	int64_t now = clock_mono_ms();

	i->id = 0;
	i->why = *result;
	i->good_until_mono_ms = 0;
	if (!result->err)
		i->id = json_get_int(i->call.answer, "id", 0);
	if (i->id > 0) {
		i->good_until_mono_ms = now + GOOD_MS;
	} else if (result->status == 404) {
		i->good_until_mono_ms = now + NOT_THERE_MS;
		snprintf(i->why.why.text, sizeof(i->why.why.text), "the App is not installed on %s",
		    i->repository);
	} else if (!result->err) {
		i->id = 0;
		i->why.err = error_set(&i->why.why, ERR_PROTOCOL,
		    "GitHub named no installation for %s", i->repository);
	}
}

static void on_answer(struct github_call *call)
{
	struct installation *i = CONTAINER_OF(call, struct installation, call);

	i->is_asking = false;
	if (i->generation != i->g->generation && !i->g->is_closing) {
		github_call_release(call);
		if (!TAILQ_EMPTY(&i->waiting))
			ask(i);
		return;
	}
	read_answer(i);
	github_call_release(call);
	give_to_waiting(i);
}

void installation_want(struct github *g, struct token *t)
{
	struct installation *i = installation_of(g, t->repository);

	if (!i->is_asking && clock_mono_ms() < i->good_until_mono_ms) {
		token_on_installation(t, i);
		return;
	}
	TAILQ_INSERT_TAIL(&i->waiting, t, at);
	if (!i->is_asking)
		ask(i);
}

void installation_drop(struct github *g, const char *repository)
{
	installation_of(g, repository)->good_until_mono_ms = 0;
}

void installations_forget(struct github *g)
{
	for (struct installation *i = g->installations; i; i = i->next)
		i->good_until_mono_ms = 0;
}

void installations_free(struct github *g)
{
	while (g->installations) {
		struct installation *i = g->installations;

		g->installations = i->next;
		github_call_release(&i->call);
		free(i->repository);
		free(i);
	}
}
