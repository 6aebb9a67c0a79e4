/* Which addresses a vendor's repository may have, and that a silent server delays no other lookup.
 * tests/integration/nightly.test.mjs tests the answers of real servers. */
#include <setjmp.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "config/config.h"
#include "registry/remote_head.h"

enum { N_ASKED = 5 };

static struct loop *loop;
static struct remote_heads *heads;
static struct network loopback = {{[10] = 0xff, [11] = 0xff, [12] = 127}, 104};
static bool is_done, is_closed;
static int n_done;

static void on_done(struct head_request *r)
{
	(void)r;
	n_done++;
	is_done = true;
}

static void on_closed(void *owner)
{
	(void)owner;
	is_closed = true;
}

static void open_with(size_t n_networks)
{
	struct config *config;

	loop = loop_new();
	config = config_snapshot(&(struct config){
	    .allow_networks = xmemdup(&loopback, sizeof(loopback)),
	    .n_allow_networks = n_networks,
	});
	heads = remote_heads_new(loop, config);
	config_unref(config);
	n_done = 0;
}

static void close_all(void)
{
	is_closed = false;
	remote_heads_close(heads, on_closed, NULL);
	loop_run_until(loop, &is_closed);
	loop_free(loop);
}

static struct head_request ask(const char *url)
{
	struct head_request r = {.git_url = url, .branch = "main", .done = on_done};

	is_done = false;
	remote_head_ask(heads, &r);
	assert_false(is_done);
	loop_run_until(loop, &is_done);
	return r;
}

/* A socket that accepts connections and sends nothing; its port. */
static int listen_silently(int *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void private_addresses_are_refused(void **state)
{
	static const char *const urls[] = {"https://localhost:1/x.git", "http://127.0.0.1:1/x.git",
	    "git://127.0.0.1:1/x.git", "https://[::1]:1/x.git", "https://169.254.169.254/x.git",
	    /* public, but an attacker on the path can answer unencrypted requests */
	    "git://192.88.98.1:1/x.git"};

	(void)state;
	open_with(0);
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct head_request r = ask(urls[i]);

		if (r.err != ERR_DENIED)
			fail_msg("%s: %d %s", urls[i], r.err, r.why.text);
		assert_string_equal(r.why.text, "its host's address may not be reached");
	}
	close_all();
}

static void allowed_private_addresses_are_connected(void **state)
{
	struct head_request r;
	int port, fd = listen_silently(&port);
	char *url = xasprintf("git://127.0.0.1:%d/x.git", port);

	(void)state;
	close(fd); /* no server listens there any more */
	open_with(1);
	r = ask(url);
	assert_int_equal(r.err, ERR_NETWORK);
	close_all();
	free(url);
}

/* Two lookups run, the others wait: a cancel ends each of them. */
static void a_lookup_at_a_silent_server_can_be_cancelled(void **state)
{
	struct head_request list[N_ASKED];
	int port, fd = listen_silently(&port), peer;
	char *url = xasprintf("git://127.0.0.1:%d/x.git", port);

	(void)state;
	open_with(1);
	is_done = false;
	for (int i = 0; i < N_ASKED; i++) {
		list[i] = (struct head_request){.git_url = url, .branch = "main", .done = on_done};
		remote_head_ask(heads, &list[i]);
	}
	peer = accept(fd, NULL, NULL); /* the first is connected and gets no answer */
	assert_true(peer >= 0);
	remote_head_cancel(heads, &list[0]);
	remote_head_cancel(heads, &list[N_ASKED - 1]);
	assert_int_equal(n_done, 0);
	while (n_done < 2) {
		is_done = false;
		loop_run_until(loop, &is_done);
	}
	assert_int_equal(list[0].err, ERR_CANCELLED);
	assert_int_equal(list[N_ASKED - 1].err, ERR_CANCELLED);
	close_all();
	assert_int_equal(n_done, N_ASKED);
	for (int i = 0; i < N_ASKED; i++)
		assert_int_equal(list[i].err, ERR_CANCELLED);
	close(peer);
	close(fd);
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(private_addresses_are_refused),
	    cmocka_unit_test(allowed_private_addresses_are_connected),
	    cmocka_unit_test(a_lookup_at_a_silent_server_can_be_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
