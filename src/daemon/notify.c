#include "daemon/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

void notify_send(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;

	if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, n);
	if (path[0] == '@')
		address.sun_path[0] = '\0'; /* the abstract namespace */
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	/* A lost datagram has no other receiver, and systemd notices silence by itself. */
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

void notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_mono_ms() * 1000);
	notify_send(text);
}

int64_t notify_watchdog_interval_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	int64_t n;

	return usec && !parse_int64(usec, &n) && n > 0 ? n / 2000 : 0;
}
