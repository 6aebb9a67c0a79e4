#include "report/accelerator_state_json.h"

#include "base/json.h"

static json_t *notes_json(const struct accelerator_state *s)
{
	json_t *list = json_array();

	if (s->is_overdue)
		json_array_append_new(list, json_string("overdue"));
	if (s->has_no_report)
		json_array_append_new(list, json_string("no report"));
	if (s->is_not_counted)
		json_array_append_new(list, json_string("not counted"));
	return list;
}

json_t *accelerator_state_json(const struct accelerator_state *s)
{
	const struct accelerator_words *words = accelerator_words(s->status);
	json_t *obj = json_object();

	json_set_str(obj, "name", words->name);
	json_set_str(obj, "word", words->word);
	json_set_str(obj, "symbol", words->symbol);
	json_set_str(obj, "tone", words->tone);
	json_set_str(obj, "text", accelerator_state_text(s));
	json_set_time(obj, "since", s->since_ms);
	json_object_set_new(obj, "notes", notes_json(s));
	return obj;
}

void standing_add_json(json_t *obj, const struct standing *s)
{
	const struct accelerator_facts *f = &s->facts;

	json_object_set_new(obj, "state", accelerator_state_json(&s->state));
	json_set_time(obj, "red_since", f->red_since_ms);
	json_set_str(obj, "red_by", red_by_name(f->red_since_ms, f->is_red_in_silence));
	json_object_set_new(obj, "overdue", json_boolean(s->state.is_overdue));
	json_object_set_new(obj, "pass_rate",
	    f->n_runs ? json_real((double)f->n_green / (double)f->n_runs) : json_null());
	json_set_time(obj, "last_report", f->last_report_ms);
}
