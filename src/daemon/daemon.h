/* The service from start to clean stop. */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

/* Runs until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop, 1 when it
 * could not start (stderr says why). */
int daemon_run(const char *config_path);

#endif
