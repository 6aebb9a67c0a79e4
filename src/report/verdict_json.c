#include "report/verdict_json.h"

#include "base/json.h"
#include "report/table.h"

static const char *const OUTCOMES[N_OUTCOMES] = {[OUTCOME_NOT_COUNTED] = "not_counted",
    [OUTCOME_NEW] = "new",
    [OUTCOME_UNCLASSIFIED] = "unclassified",
    [OUTCOME_MISSING] = "missing",
    [OUTCOME_RUNNING] = "running",
    [OUTCOME_WAITING] = "waiting",
    [OUTCOME_HELD] = "held",
    [OUTCOME_MERGED] = "merged_only",
    [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_LACKING] = "lacking",
    [OUTCOME_UNRELATED] = "unrelated",
    [OUTCOME_PASSED] = "passed",
    [OUTCOME_WITHOUT] = "nothing"};

static const char *const VERDICTS[N_VERDICTS] = {[VERDICT_PASS] = "pass",
    [VERDICT_FAIL] = "fail",
    [VERDICT_PENDING] = "pending",
    [VERDICT_UNKNOWN] = "unknown"};

/* Silence without a single cell is one thing that is missing, or is not counted. */
static size_t n_in(const struct table_column *c, enum failure_group group)
{
	enum failure_group of_silence =
	    c->outcome == OUTCOME_NOT_COUNTED ? FAILURE_NOT_COUNTED : FAILURE_MISSING;

	return c->n_failures[group] +
	       (group == of_silence && c->silent && !c->n_failures[of_silence]);
}

static json_t *column_json(const struct table_column *c)
{
	json_t *obj = json_object();

	json_set_str(obj, "name", c->accelerator->name);
	json_set_str(obj, "outcome", OUTCOMES[c->outcome]);
	for (int g = 0; g < N_FAILURE_GROUPS; g++)
		json_set_int(obj, failure_group_name((enum failure_group)g),
		    (int64_t)n_in(c, (enum failure_group)g));
	json_set_int(obj, "passed", (int64_t)c->n_cells[TEST_PASS]);
	json_set_int(obj, "lacking", (int64_t)c->n_lacking);
	json_set_int(obj, "rerunning", (int64_t)c->n_rerunning);
	return obj;
}

static json_t *columns_json(const struct table *t)
{
	json_t *list = json_array();

	for (int outcome = 0; outcome < N_OUTCOMES; outcome++)
		for (size_t i = 0; i < t->n_columns; i++)
			if ((int)t->columns[i].outcome == outcome &&
			    json_array_size(list) < TABLE_COLUMNS_MAX)
				json_array_append_new(list, column_json(&t->columns[i]));
	return list;
}

json_t *verdict_json(const struct change_view *v)
{
	bool is_shown = v->state != CHANGE_SUPERSEDED;
	json_t *obj = json_object();
	struct table t;

	table_init(&t, v);
	json_set_int(obj, "schema", 1);
	json_set_str(obj, "head_sha", v->head_sha);
	json_set_str(obj, "merge_base_sha", v->merge_base_sha);
	json_set_str(obj, "verdict", VERDICTS[is_shown ? table_verdict(&t) : VERDICT_UNKNOWN]);
	json_object_set_new(obj, "complete", json_boolean(table_is_complete(&t)));
	for (int g = 0; is_shown && g < N_FAILURE_GROUPS; g++) {
		size_t n = 0;

		for (size_t i = 0; i < t.n_columns; i++)
			n += n_in(&t.columns[i], (enum failure_group)g);
		json_set_int(obj, failure_group_name((enum failure_group)g), (int64_t)n);
	}
	if (is_shown) {
		json_set_int(obj, "rerunning", (int64_t)t.n_rerunning);
		json_object_set_new(obj, "accelerators", columns_json(&t));
	}
	table_release(&t);
	return obj;
}
