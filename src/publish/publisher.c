/* The publisher's life, its kinds of effect, and the preview. */

#include "db/seats.h"
#include "publish/publish_internal.h"
#include "text/terminal.h"

enum { CLOSING_MS = 3000 };

static const struct effect_kind *const KINDS[] = {
    &comment_kind, &checks_kind, &reaction_kind, &reply_kind, &red_issue_kind};

/* Each may hold a whole view for a moment, and GitHub takes one content write a second. A row of check runs may write for many
 * seconds. */
#define LANE(n)                                                                                                        \
	{                                                                                                              \
		.claimed = n, .begun = n, .begun_per_target = n                                                        \
	}
static const struct lane_limits LANES[N_PUBLISH_LANES] = {[COMMENT_LANE] = LANE(4),
    [CHECKS_LANE] = LANE(2),
    [REACTION_LANE] = LANE(2),
    [REPLY_LANE] = LANE(2),
    [RED_ISSUE_LANE] = LANE(1)};
#undef LANE

static void on_publisher_topic(unsigned topics, void *owner)
{
	struct publisher *p = owner;

	if (topics & STORE_NODE)
		engine_follow_node(p->engine);
	if (topics & STORE_COMMENTS)
		engine_ring(p->engine);
}

static void close_publisher_if_idle(struct publisher *p)
{
	if (p->is_closed || !p->is_engine_closed || p->n_previews || p->is_reading_writes)
		return;
	p->is_closed = true;
	loop_reap(p->deps.loop, p->on_closed, p->owner);
}

static void on_writes_listed(struct store_query *q)
{
	struct publisher *p = CONTAINER_OF(q, struct publisher, writes.q);
	bool has_seat = store_has_seat(p->deps.store, SEAT_PUBLISHER);

	p->is_reading_writes = false;
	if (!q->err)
		engine_forget_writes(p->engine);
	for (size_t i = 0; i < p->writes.n && has_seat; i++)
		engine_note_writes(p->engine, p->writes.now_ms - p->writes.list[i].at_ms, (int)p->writes.list[i].n);
	list_writes_release(&p->writes);
	if (q->err && has_seat)
		log_event(LOG_WARN, "writes_unread", LOG_S("error", q->why.text));
	engine_pause(p->engine, !has_seat);
	close_publisher_if_idle(p);
}

/* The writes of other nodes count, so it begins when it knows them. */
static void on_publisher_seat(enum seat seat, bool has_seat, void *owner)
{
	struct publisher *p = owner;

	(void)seat;
	engine_pause(p->engine, true);
	if (!has_seat || p->is_reading_writes || engine_is_closing(p->engine))
		return;
	p->writes =
	    (struct list_writes){.q = {.done = on_writes_listed, .kind = QUERY_URGENT, .retry.event = "writes_unread"},
		.now_ms = clock_wall_ms()};
	p->is_reading_writes = store_list_writes(p->deps.store, &p->writes) == 0;
	if (!p->is_reading_writes)
		engine_pause(p->engine, false);
}

static bool is_publisher_idle(enum seat seat, void *owner)
{
	const struct publisher *p = owner;

	(void)seat;
	return engine_n_claimed(p->engine) == 0 && !p->is_reading_writes;
}

struct publisher *publish_new(const struct publish_deps *deps, struct config *c)
{
	struct publisher *p = xcalloc(1, sizeof(*p));

	p->deps = *deps;
	p->config = config_ref(c);
	p->engine = engine_new(&(struct engine_options){.loop = deps->loop,
	    .store = deps->store,
	    .owner = p,
	    .kinds = KINDS,
	    .n_kinds = ARRAY_LEN(KINDS),
	    .lanes = LANES,
	    .n_lanes = N_PUBLISH_LANES,
	    .writes_per_minute = c->github_writes_per_minute,
	    .claim_failed_event = "publish_claim_failed"});
	if (!store_has_seat(deps->store, SEAT_PUBLISHER))
		engine_pause(p->engine, true);
	store_subscribe(deps->store, STORE_COMMENTS | STORE_NODE, on_publisher_topic, p);
	store_add_part(deps->store, &(struct seat_part){SEAT_PUBLISHER, on_publisher_seat, is_publisher_idle, p});
	return p;
}

void publish_configure(struct publisher *p, struct config *c)
{
	struct config *old = p->config;

	p->config = config_ref(c);
	config_unref(old);
	engine_limit_writes(p->engine, c->github_writes_per_minute);
	engine_look(p->engine);
}

static void on_publish_engine_closed(void *owner)
{
	struct publisher *p = owner;

	p->is_engine_closed = true;
	close_publisher_if_idle(p);
}

void publish_close(struct publisher *p, void (*on_closed)(void *owner), void *owner)
{
	p->on_closed = on_closed;
	p->owner = owner;
	engine_close(p->engine, CLOSING_MS, on_publish_engine_closed, p);
}

void publish_free(struct publisher *p)
{
	if (!p)
		return;
	assert(p->is_closed);
	config_unref(p->config);
	engine_free(p->engine);
	free(p);
}

void publish_read_counters(const struct publisher *p, struct publish_counters *ret)
{
	*ret = p->counters;
	ret->n_paced = engine_n_paced(p->engine);
}

char *publisher_github_url(const struct config *c)
{
	const char *api_url = c->github_api_url;

	if (str_has_suffix(api_url, "/api/v3"))
		return xstrndup(api_url, strlen(api_url) - strlen("/api/v3"));
	if (str_has_prefix(api_url, "https://api.") && str_has_suffix(api_url, ".ghe.com"))
		return xasprintf("https://%s", api_url + strlen("https://api."));
	return xstrdup("https://github.com");
}

/* ---- the preview ---- */

enum { TERMINAL_MAX_BYTES = 4 * 1024 * 1024 };

static void render_preview(struct preview *preview)
{
	const char *public_url = preview->config->public_url;
	int64_t now_ms = clock_wall_ms();
	struct table t;

	table_init(&t, preview->change.view);
	if (preview->format == PREVIEW_MARKDOWN) {
		char *github_url = publisher_github_url(preview->config);
		struct comment comment;

		comment_render(&t,
		    &(struct comment_options){.public_url = public_url,
			.github_url = github_url,
			.bot = github_app_slug(preview->publisher->deps.github),
			.now_wall_ms = now_ms},
		    &comment);
		preview->text = comment.markdown;
		free(github_url);
	} else {
		struct buf out = BUF_INIT(TERMINAL_MAX_BYTES);

		terminal_render(&t,
		    &(struct terminal_options){.has_colour = preview->format == PREVIEW_TERMINAL_COLOUR,
			.width = preview->width,
			.public_url = public_url,
			.now_wall_ms = now_ms},
		    &out);
		preview->text = buf_detach(&out);
	}
	table_release(&t);
}

static void on_previewed_change(struct store_query *q)
{
	struct preview *preview = CONTAINER_OF(q, struct preview, change.q);
	struct publisher *p = preview->publisher;

	preview->err = q->err;
	preview->why = q->why;
	if (!q->err)
		render_preview(preview);
	change_view_free(preview->change.view);
	config_unref(preview->config);
	p->n_previews--;
	close_publisher_if_idle(p);
	preview->done(preview);
}

int publish_preview(struct publisher *p, struct preview *preview)
{
	preview->err = 0;
	preview->text = NULL;
	if (engine_is_closing(p->engine))
		return ERR_CLOSING;
	preview->publisher = p;
	preview->change = (struct get_change){.q = {.done = on_previewed_change},
	    .now_ms = clock_wall_ms(),
	    .repository = p->config->upstream_repository,
	    .number = preview->number,
	    .max_verdicts = VERDICTS_MAX};
	int rc = store_get_change(p->deps.store, &preview->change);
	if (rc)
		return rc;
	preview->config = config_ref(p->config);
	p->n_previews++;
	return 0;
}
