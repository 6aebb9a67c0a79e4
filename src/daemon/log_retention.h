/* Every ten minutes, logs that nobody wrote to for retention.logs are dropped. Not while the wall
 * clock is in doubt: a clock that jumped ahead must not cost a log. Thread: loop. */
#ifndef DAEMON_LOG_RETENTION_H
#define DAEMON_LOG_RETENTION_H

struct daemon;
struct log_retention;

struct log_retention *log_retention_new(struct daemon *d);
void log_retention_stop(struct log_retention *r); /* before logs are closed; NULL is fine */
void log_retention_free(struct log_retention *r); /* logs are closed; NULL is fine */

#endif
