/* What systemd wants to be told (sd_notify(3)'s protocol): one datagram to $NOTIFY_SOCKET.
 * Without that variable every call does nothing. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

void notify_ready(void);
void notify_reloading(void); /* followed by notify_ready() */
void notify_stopping(void);
void notify_status(const char *text);
void notify_watchdog(void);
/* How often notify_watchdog() is due, half of what systemd waits; 0: not wanted. */
int64_t notify_watchdog_interval_ms(void);

#endif
