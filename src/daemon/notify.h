/* Notifications to systemd (the protocol of sd_notify(3)): each call sends one datagram to
 * $NOTIFY_SOCKET, and does nothing without that variable. Thread: any; never blocks. Owns: nothing. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

void notify_ready(void);
void notify_reloading(void); /* followed by notify_ready() */
void notify_stopping(void);
void notify_watchdog(void);
/* The interval for notify_watchdog(), half of systemd's timeout. 0: systemd does not wait for it. */
int64_t notify_watchdog_interval_ms(void);

#endif
