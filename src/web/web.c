#include "web/web_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "web/gate.h"

struct web *web_new(const struct web_deps *deps)
{
	struct web *w = xcalloc(1, sizeof(*w));

	w->deps = *deps;
	w->started_wall_ms = clock_wall_ms();
	w->gate = web_gate_new(web_refuse_turn);
	w->log_readers = http_group_amounts_new();
	web_add_health_routes(w);
	web_add_status_routes(w);
	web_add_metrics_routes(w);
	web_add_change_routes(w);
	web_add_dashboard_routes(w);
	web_add_accelerator_routes(w);
	web_add_accelerator_page_routes(w);
	web_add_known_routes(w);
	web_add_level_status_routes(w);
	web_add_nightly_routes(w);
	web_add_platform_routes(w);
	web_add_job_routes(w);
	web_add_badge_routes(w);
	web_add_feed_routes(w);
	web_add_job_log_routes(w);
	web_add_asset_routes(w);
	web_add_event_routes(w);
	web_add_fallback(w);
	return w;
}

void web_configure(struct web *w, struct config *config)
{
	config_unref(w->config);
	w->config = config_ref(config);
}

void web_stop(struct web *w)
{
	w->is_stopping = true;
	web_cut_followers(w);
	web_cut_events(w);
	web_gate_close(w->gate);
}

void web_free(struct web *w)
{
	if (!w)
		return;
	config_unref(w->config);
	web_free_events(w);
	web_gate_close(w->gate);
	web_gate_free(w->gate);
	http_group_amounts_free(w->log_readers);
	free(w->resources);
	free(w);
}
