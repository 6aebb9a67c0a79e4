/* Notifications to systemd (the protocol of sd_notify(3)): each call sends one datagram to
 * $NOTIFY_SOCKET, and does nothing without that variable. Thread: any; never blocks. Owns: nothing. */
#pragma once

/* "READY=1", "STOPPING=1" or "WATCHDOG=1". */
void notify_send(const char *text);
void notify_reloading(void); /* followed by READY=1 */
/* The interval for WATCHDOG=1, half of systemd's timeout. 0: systemd does not wait for it. */
int64_t notify_watchdog_interval_ms(void);
