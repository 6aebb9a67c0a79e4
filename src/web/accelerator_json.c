#include "web/accelerator_json.h"

#include "report/accelerator_state_json.h"
#include "web/quality.h"

static json_t *runners_json(const struct accelerator *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n_runners; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", a->runners[i].name,
						"kind", runner_kind_name(a->runners[i].kind),
						"reruns", reruns_name(a->runners[i].reruns)));
	return list;
}

json_t *accelerator_json(
    const struct config *c, const struct accelerator *a, const struct accelerator_figures *f)
{
	json_t *v = json_object(), *links = json_object(), *oncall = json_array();
	struct standing nothing = {.facts.level = a->level};

	json_set_str(v, "name", a->name);
	json_set_str(v, "title", a->title);
	json_set_str(v, "vendor", a->vendor);
	json_set_str(v, "level", level_name(a->level));
	json_set_str(links, "docs", a->docs_url);
	json_set_str(links, "help", a->help_url);
	json_object_set_new(v, "links", links);
	for (char **login = a->oncall; login && *login; login++)
		json_array_append_new(oncall, json_string(*login));
	json_object_set_new(v, "oncall", oncall);
	json_set_str(v, "trust", trust_name(a->trust));
	json_object_set_new(v, "runners", runners_json(a));
	nothing.state = accelerator_state_of(&nothing.facts, 0);
	if (a->level == LEVEL_1) /* it shows nothing, nor what it showed at another level */
		f = NULL;
	json_set_int(v, "dispatches_30d", f ? f->n_dispatches : 0);
	json_set_int(v, "deadlines_missed_30d", f ? f->n_expired : 0);
	standing_add_json(v, f ? &f->at : &nothing);
	quality_add_json(v, c, a->level, f ? &f->quality : NULL);
	return v;
}
