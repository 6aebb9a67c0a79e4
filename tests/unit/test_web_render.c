/* Answers of an uncontrolled size: short ones on the loop, long ones in the pool. */
#include <setjmp.h>

#include <cmocka.h>

#include "http_rig.h"
#include "web/web_internal.h"

struct asked {
	struct web_render render;
	struct loop *loop;
	bool was_on_loop;
};

static int n_over, n_on_loop, n_in_pool;

static json_t *make(void *owner)
{
	struct asked *a = owner;

	a->was_on_loop = loop_is_this_thread(a->loop);
	return json_pack("{s:b}", "loop", a->was_on_loop);
}

static void over(void *owner)
{
	struct asked *a = owner;

	n_over++;
	n_on_loop += a->was_on_loop;
	n_in_pool += !a->was_on_loop;
	free(a);
}

static void render(struct http_request *r, struct rig *g, size_t n_items)
{
	struct asked *a = xcalloc(1, sizeof(*a));

	a->loop = g->loop;
	a->render = (struct web_render){.make = make, .over = over, .owner = a, .request = r};
	web_render(g->loop, &a->render, n_items);
}

static void on_short(struct http_request *r, void *owner) { render(r, owner, 10); }

static void on_long(struct http_request *r, void *owner)
{
	struct rig *g = owner;

	render(r, g, 100000);
	sem_post(&g->event);
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/api/v1/short", .on_request = on_short},
    {.method = "GET", .pattern = "/api/v1/long", .on_request = on_long},
};

static void expect(int fd, const char *path, const char *body)
{
	char *request = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	struct rig_answer a;

	rig_say(fd, request);
	a = rig_answer(fd, false);
	assert(a.status == 200 && strcmp(buf_str(&a.body), body) == 0);
	assert(strstr(a.head.data, "\r\nAccess-Control-Allow-Origin: *\r\n"));
	rig_answer_release(&a);
	free(request);
}

static void asking_client(struct rig *g)
{
	int fd = rig_connect(g);

	expect(fd, "/api/v1/short", "{\"loop\":true}");
	expect(fd, "/api/v1/long", "{\"loop\":false}");
	expect(fd, "/api/v1/long", "{\"loop\":false}");
	close(fd);
	rig_wait(g);
	rig_wait(g);
	/* A client that leaves meanwhile causes no crash. */
	fd = rig_connect(g);
	rig_say(fd, "GET /api/v1/long HTTP/1.1\r\nHost: x\r\n\r\n");
	rig_wait(g);
	close(fd);
}

static void long_answers_are_rendered_in_the_pool(void **state)
{
	struct rig g = {0};

	(void)state;
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, asking_client);
	assert_int_equal(n_over, 4);
	assert_int_equal(n_on_loop, 1);
	assert_int_equal(n_in_pool, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(long_answers_are_rendered_in_the_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
