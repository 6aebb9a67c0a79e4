/* Readers of logs that leave while something is asked for them. */
#include "parts_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "store/jobs.h"
#include "web/web.h"

/* ---- a store that answers when it is told to ---- */

static struct find_job *asked;

int store_find_job(struct store *s, struct find_job *q)
{
	(void)s;
	asked = q;
	return 0;
}

void find_job_release(struct find_job *q)
{
	FREE_AND_NULL(q->dispatch_id);
	FREE_AND_NULL(q->accelerator);
}

int store_get_job(struct store *s, struct get_job *q)
{
	(void)s;
	(void)q;
	return ERR_BUSY;
}

static void no_metrics(struct buf *out, void *owner)
{
	(void)out;
	(void)owner;
}

static void on_turn(struct timer *t)
{
	*(bool *)timer_owner(t) = true;
}

/* One turn of the loop that takes a millisecond. */
static void turn(struct parts *p)
{
	bool is_over = false;
	struct timer *t = timer_new(p->loop, on_turn, &is_over);

	timer_start(t, 1);
	loop_run_until(p->loop, &is_over);
	timer_close(t);
}

/* Begins to follow a log; returns once the store is asked about the job. */
static int follow(struct parts *p)
{
	static const char request[] = "GET /api/v1/jobs/7/log?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n";
	struct sockaddr_in sin = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)strtol(strrchr(p->url, ':') + 1, NULL, 10)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(
	    send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	while (!asked)
		turn(p);
	return fd;
}

/* The server and the logs are closed before the store answers. */
static void a_late_answer_finds_nobody(void **state)
{
	struct web_deps deps = {.write_metrics = no_metrics};
	bool are_logs_closed = false;
	struct parts p = {0};
	struct error e = {0};
	struct web *w;
	int fd;

	folder_setup(state);
	folder_write("outpost.yml", MINIMAL_YML);
	parts_open(&p);
	deps.loop = p.loop;
	deps.store = p.store;
	deps.server = p.server;
	assert_int_equal(logs_open(p.loop, "state", &deps.logs, &e), 0);
	w = web_new(&deps);
	web_configure(w, p.config);
	fd = follow(&p);
	web_stop(w);
	parts_close_server(&p);
	logs_close(deps.logs, parts_on_closed, &are_logs_closed);
	loop_run_until(p.loop, &are_logs_closed);
	asked->q.err = ERR_NOT_FOUND;
	asked->q.done(&asked->q);
	close(fd);
	parts_close_store(&p);
	web_free(w);
	parts_close(&p);
	folder_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_late_answer_finds_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
