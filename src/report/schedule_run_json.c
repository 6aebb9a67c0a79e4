#include "report/schedule_run_json.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "report/dashboard_json.h"
#include "report/json_field.h"

char *nightly_day_url(const char *public_url, const char *accelerator, const char *day)
{
	return xasprintf("%s/nightly?accelerator=%s&until=%s&days=1", public_url, accelerator, day);
}

json_t *schedule_run_json(
    const struct schedule_run_view *v, const char *accelerator, const char *public_url)
{
	char day[DAY_TEXT_BYTES], *url;
	json_t *obj;

	if (!v->id)
		return json_null();
	obj = json_object();
	day_text(v->due_ms / 86400000, day);
	url = nightly_day_url(public_url, accelerator, day);
	json_set_int(obj, "id", v->id);
	json_set_str(obj, "day", day);
	json_set_time(obj, "due_at", v->due_ms);
	json_set_str(obj, "cause", v->cause);
	json_set_str(obj, "state", v->state);
	json_set_str(obj, "outcome", v->outcome ? v->outcome : "running");
	json_set_foreign_text(obj, "reason", v->reason);
	json_set_str(obj, "upstream_sha", v->upstream_sha);
	json_set_str(obj, "source_sha", v->source_sha);
	json_set_time(obj, "started_at", v->started_ms);
	json_set_time(obj, "ended_at", v->ended_ms);
	json_set_str(obj, "url", url);
	free(url);
	return obj;
}
