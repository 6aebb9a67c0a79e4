/* /readyz succeeds only when all parts that requests need are there. */
#include "parts_rig.h"

#include "web/web.h"

static const char *missing;

static const char *why_not_ready(void *owner)
{
	(void)owner;
	return missing;
}

static void no_metrics(struct buf *out, void *owner)
{
	(void)out;
	(void)owner;
}

static void expect(struct parts *p, int status, const char *text)
{
	struct ask a = {.url = xasprintf("%s/readyz", p->url)};
	int got;

	a.call = (struct http_call){.method = "GET", .url = a.url, .allow_plain_http = true, .done = ask_on_done};
	http_call_start(p->client, &a.call);
	got = ask_wait(p, &a);
	if (got != status || !strstr(buf_str(&a.call.answer), text))
		fail_msg("%d %s", got, buf_str(&a.call.answer));
	ask_release(&a);
}

static void the_service_is_ready_when_all_parts_are(void **state)
{
	struct parts p = {0};
	struct web_deps deps = {.write_metrics = no_metrics, .why_not_ready = why_not_ready};
	struct web *w;

	folder_setup(state);
	folder_write("outpost.yml", MINIMAL_YML);
	parts_open(&p);
	deps.loop = p.loop;
	deps.store = p.store;
	deps.server = p.server;
	w = web_new(&deps);
	expect(&p, 503, "the registry is not loaded yet");
	web_configure(w, p.config);
	missing = "the tokens are not read yet";
	expect(&p, 503, "the tokens are not read yet");
	missing = NULL;
	expect(&p, 200, "ready");
	parts_close_server(&p);
	parts_close_store(&p);
	web_free(w);
	parts_close(&p);
	folder_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_service_is_ready_when_all_parts_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
