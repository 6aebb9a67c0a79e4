#include "model/accelerator.h"

#include "base/alloc.h"
#include "base/strv.h"

const char *level_name(enum level level)
{
	static const char *const names[] = {"L1", "L2", "L3", "L4"};

	return names[level - LEVEL_1];
}

const char *trust_name(enum trust trust)
{
	static const char *const names[] = {
	    [TRUST_ANYONE] = "anyone",
	    [TRUST_CONTRIBUTORS] = "contributors",
	    [TRUST_MEMBERS] = "members",
	    [TRUST_APPROVED] = "approved",
	    [TRUST_MERGED] = "merged",
	};

	return names[trust];
}

const char *visibility_name(enum visibility v)
{
	return v == VISIBILITY_SUMMARY ? "summary" : "public";
}

const char *runner_kind_name(enum runner_kind k)
{
	static const char *const names[] = {
	    [RUNNER_GITHUB] = "github",
	    [RUNNER_WEBHOOK] = "webhook",
	    [RUNNER_PULL] = "pull",
	    [RUNNER_INFRA] = "infra",
	};

	return names[k];
}

static void runner_release(struct runner *r)
{
	secret_unref(r->secret);
	free(r->name);
	free(r->repository);
	free(r->workflow);
	free(r->url);
	strv_free(r->labels);
}

void accelerator_release(struct accelerator *a)
{
	for (size_t i = 0; i < a->n_runners; i++)
		runner_release(&a->runners[i]);
	free(a->runners);
	free(a->name);
	free(a->title);
	free(a->vendor);
	free(a->docs_url);
	free(a->help_url);
	free(a->source_git_url);
	free(a->source_branch);
	strv_free(a->oncall);
	strv_free(a->triggers.paths);
	strv_free(a->triggers.branches);
	strv_free(a->triggers.schedules);
	strv_free(a->must_pass);
	strv_free(a->skip);
	platform_free(a->platform);
	free(a->file);
	*a = (struct accelerator){0};
}

int64_t deadline_acknowledge_ms(const struct deadlines *d, enum runner_kind kind)
{
	if (d->acknowledge_ms)
		return d->acknowledge_ms;
	return kind == RUNNER_WEBHOOK ? INT64_C(10) * 60 * 1000 : 0;
}
