/* Readers of logs that leave during a query, and the limit of readers for one client. */
#include "parts_rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "replaces.h"
#include "store/jobs.h"
#include "views/job.h"
#include "web/web.h"

REPLACES(store_find_job);
REPLACES(find_job_release);
REPLACES(store_get_job);

/* ---- a store that answers when the test says so ---- */

enum { ASKED_MAX = 64, OF_ONE_CLIENT_MAX = 32 };

static struct find_job *asked[ASKED_MAX];
static int n_asked;

int store_find_job(struct store *s, struct find_job *q)
{
	(void)s;
	assert_true(n_asked < ASKED_MAX);
	asked[n_asked++] = q;
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

static void on_turn(struct timer *t) { *(bool *)timer_owner(t) = true; }

/* Runs one turn of the loop, which takes a millisecond. */
static void turn(struct parts *p)
{
	bool is_over = false;
	struct timer *t = timer_new(p->loop, on_turn, &is_over);

	timer_start(t, 1);
	loop_run_until(p->loop, &is_over);
	timer_close(t);
}

/* Requests from 127.0.0.`client` to follow a log. */
static int ask(struct parts *p, uint8_t client)
{
	static const char request[] = "GET /api/v1/jobs/7/log?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n";
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + client)};
	struct sockaddr_in sin = {
	    .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)strtol(strrchr(p->url, ':') + 1, NULL, 10)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	return fd;
}

/* The same; returns once the store has the query for the job. */
static int follow(struct parts *p, uint8_t client)
{
	int n = n_asked, fd = ask(p, client);

	while (n_asked == n)
		turn(p);
	return fd;
}

static void open_web(struct parts *p, struct web_deps *deps, struct web **ret)
{
	struct error e = {0};

	folder_write("outpost.yml", MINIMAL_YML);
	parts_open(p);
	deps->write_metrics = no_metrics;
	deps->loop = p->loop;
	deps->store = p->store;
	deps->server = p->server;
	assert_int_equal(logs_open(p->loop, "state", &deps->logs, &e), 0);
	*ret = web_new(deps);
	web_configure(*ret, p->config);
	n_asked = 0;
}

/* The server and the logs are closed before the store answers. */
static void close_web(struct parts *p, const struct web_deps *deps, struct web *w)
{
	bool are_logs_closed = false;

	web_stop(w);
	parts_close_server(p);
	logs_close(deps->logs, parts_on_closed, &are_logs_closed);
	loop_run_until(p->loop, &are_logs_closed);
	for (int i = 0; i < n_asked; i++) {
		asked[i]->q.err = ERR_NOT_FOUND;
		asked[i]->q.done(&asked[i]->q);
	}
	parts_close_store(p);
	web_free(w);
	parts_close(p);
}

static void a_late_answer_after_the_reader_left_is_dropped(void **state)
{
	struct web_deps deps = {0};
	struct parts p = {0};
	struct web *w;
	int fd;

	folder_setup(state);
	open_web(&p, &deps, &w);
	fd = follow(&p, 1);
	close_web(&p, &deps, w);
	close(fd);
	folder_teardown(state);
}

/* Finding 14. */
static void one_client_has_a_share_of_the_places(void **state)
{
	int fds[OF_ONE_CLIENT_MAX], more, other;
	struct web_deps deps = {0};
	struct parts p = {0};
	char answer[600] = "";
	struct web *w;

	folder_setup(state);
	open_web(&p, &deps, &w);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = follow(&p, 1);
	more = ask(&p, 1);
	while (recv(more, answer, sizeof(answer) - 1, MSG_DONTWAIT) < 0)
		turn(&p);
	assert_non_null(strstr(answer, "HTTP/1.1 429 Too Many Requests\r\n"));
	assert_non_null(strstr(answer, "\r\nRetry-After: "));
	assert_non_null(strstr(answer, "this address has reached its limit of open logs"));
	assert_int_equal(n_asked, OF_ONE_CLIENT_MAX);
	other = follow(&p, 2);
	/* A place is free again when its answer is given. */
	asked[0]->q.err = ERR_NOT_FOUND;
	asked[0]->q.done(&asked[0]->q);
	asked[0] = asked[--n_asked];
	close(more);
	more = follow(&p, 1);
	close_web(&p, &deps, w);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	close(more);
	close(other);
	folder_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_late_answer_after_the_reader_left_is_dropped),
	    cmocka_unit_test(one_client_has_a_share_of_the_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
