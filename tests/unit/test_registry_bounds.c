/* A fetch ends after a timeout, after too many bytes, or when it is cancelled. */
#include <setjmp.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "registry/fetch.h"

struct rig {
	struct bounds b;
	int ends[2];
};

static int setup(void **state)
{
	static struct rig g;

	g.b = (struct bounds){
	    .deadline_mono_ms = clock_mono_ms() + 60000, .n_bytes_left = 10, .cancel_fd = eventfd(0, EFD_NONBLOCK)};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, g.ends), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	close(g->b.cancel_fd);
	close(g->ends[0]);
	close(g->ends[1]);
	return 0;
}

static void a_ready_descriptor_returns_at_once(void **state)
{
	struct rig *g = *state;

	assert_int_equal(write(g->ends[1], "x", 1), 1);
	assert_int_equal(bounds_wait(&g->b, g->ends[0], POLLIN), 0);
	assert_int_equal(bounds_wait(&g->b, g->ends[0], POLLOUT), 0);
	assert_int_equal(bounds_check(&g->b), 0);
}

static void a_timeout_is_permanent(void **state)
{
	struct rig *g = *state;

	g->b.deadline_mono_ms = clock_mono_ms() + 5;
	assert_int_equal(bounds_wait(&g->b, g->ends[0], POLLIN), ERR_TIMEOUT);
	g->b.deadline_mono_ms = clock_mono_ms() + 60000;
	assert_int_equal(bounds_check(&g->b), ERR_TIMEOUT);
	assert_int_equal(bounds_wait(&g->b, g->ends[0], POLLOUT), ERR_TIMEOUT);
}

static void received_bytes_are_bounded(void **state)
{
	struct rig *g = *state;

	assert_int_equal(bounds_count(&g->b, 10), 0);
	assert_int_equal(bounds_count(&g->b, 1), ERR_TOO_BIG);
	assert_int_equal(bounds_check(&g->b), ERR_TOO_BIG);
}

static void a_cancel_ends_the_wait(void **state)
{
	struct rig *g = *state;
	const uint64_t one = 1;

	assert_int_equal(write(g->b.cancel_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(bounds_wait(&g->b, g->ends[0], POLLIN), ERR_CANCELLED);
	assert_int_equal(bounds_check(&g->b), ERR_CANCELLED);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_ready_descriptor_returns_at_once),
	    TEST(a_timeout_is_permanent),
	    TEST(received_bytes_are_bounded),
	    TEST(a_cancel_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
