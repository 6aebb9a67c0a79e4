#include "model/nightly_view.h"

#include <stdlib.h>

static void mark_release(struct nightly_mark *m)
{
	free(m->repository);
	free(m->upstream_sha);
	free(m->source_url);
	free(m->source_sha);
}

static void accelerator_view_release(struct nightly_accelerator *a, size_t n_days)
{
	for (size_t i = 0; a->runs && i < n_days; i++)
		schedule_run_view_release(&a->runs[i]);
	free(a->runs);
	free(a->name);
	free(a->title);
	free(a->crons);
}

static void test_release(struct nightly_test *t)
{
	for (size_t i = 0; i < t->n_cells; i++) {
		mark_release(&t->cells[i].first_bad);
		mark_release(&t->cells[i].last_good);
		free(t->cells[i].days);
	}
	free(t->cells);
	free(t->suite);
	free(t->name);
	free(t->dtype);
}

static void commits_release(struct nightly_commits *c)
{
	for (size_t i = 0; i < c->n_listed; i++) {
		free(c->list[i].sha);
		free(c->list[i].title);
		free(c->list[i].author);
	}
	free(c->list);
	free(c->repository);
	free(c->good_sha);
	free(c->bad_sha);
}

void nightly_view_free(struct nightly_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n_accelerators; i++)
		accelerator_view_release(&v->accelerators[i], v->n_days);
	for (size_t i = 0; i < v->n_tests; i++)
		test_release(&v->tests[i]);
	for (size_t i = 0; i < v->n_commits; i++)
		commits_release(&v->commits[i]);
	free(v->accelerators);
	free(v->tests);
	free(v->commits);
	free(v->next.suite);
	free(v);
}
