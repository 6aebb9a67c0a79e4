#include "model/experiment.h"

#include <stdlib.h>

#include "base/str.h"
#include "base/strv.h"

static const char *const RERUNS[] = {"none", "tests", "whole"};
static const char *const SIDES[] = {"head", "base"};

const char *reruns_name(enum reruns r)
{
	return RERUNS[r];
}

enum reruns reruns_parse(const char *name)
{
	for (int r = 0; r < N_RERUNS; r++)
		if (str_eq(RERUNS[r], name))
			return (enum reruns)r;
	return RERUNS_NONE;
}

const char *experiment_side_name(enum experiment_side s)
{
	return SIDES[s];
}

enum experiment_side experiment_side_parse(const char *name)
{
	int s = 0;

	while (s < N_EXPERIMENT_SIDES && !str_eq(SIDES[s], name))
		s++;
	return (enum experiment_side)s;
}

void experiment_request_release(struct experiment_request *r)
{
	free(r->of);
	free(r->sha);
	strv_free(r->tests);
	strv_free(r->jobs);
	free(r->environment);
	*r = (struct experiment_request){.id = 0};
}
