#include <setjmp.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/notify.h"

static int open_socket(struct sockaddr_un *address, size_t name_bytes)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(
	    bind(fd, (struct sockaddr *)address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name_bytes)), 0);
	return fd;
}

static void assert_notified(int fd, const char *prefix)
{
	char text[256] = "";

	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_true(str_has_prefix(text, prefix));
}

static void systemd_is_notified_at_a_path(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[] = "/tmp/notify-XXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	fd = open_socket(&address, strlen(address.sun_path) + 1);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	notify_send("READY=1");
	assert_notified(fd, "READY=1");
	notify_reloading();
	assert_notified(fd, "RELOADING=1\nMONOTONIC_USEC=");
	notify_send("STOPPING=1");
	assert_notified(fd, "STOPPING=1");
	notify_send("WATCHDOG=1");
	assert_notified(fd, "WATCHDOG=1");
	close(fd);
	unlink(address.sun_path);
	rmdir(folder);
}

static void systemd_is_notified_in_the_abstract_namespace(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[64];
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "@outpost-notify-%d", (int)getpid());
	memcpy(address.sun_path, name, strlen(name));
	address.sun_path[0] = '\0';
	fd = open_socket(&address, strlen(name));
	setenv("NOTIFY_SOCKET", name, 1);
	notify_send("READY=1");
	assert_notified(fd, "READY=1");
	close(fd);
}

static void without_systemd_nothing_happens(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	notify_send("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_send("READY=1");
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	notify_send("READY=1");
}

static void the_watchdog_is_notified_twice_per_interval(void **state)
{
	(void)state;
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(notify_watchdog_interval_ms(), 0);
	setenv("WATCHDOG_USEC", "60000000", 1);
	assert_int_equal(notify_watchdog_interval_ms(), 30000);
	setenv("WATCHDOG_USEC", "nonsense", 1);
	assert_int_equal(notify_watchdog_interval_ms(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(systemd_is_notified_at_a_path),
	    cmocka_unit_test(systemd_is_notified_in_the_abstract_namespace),
	    cmocka_unit_test(without_systemd_nothing_happens),
	    cmocka_unit_test(the_watchdog_is_notified_twice_per_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
