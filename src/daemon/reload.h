/* The configuration's way into the daemon: loading it at a start and for --check, and reloading it while the
 * daemon runs. A reload reads the files in the pool and then either puts the new configuration in force
 * everywhere, or refuses it with the reason while the old one stays. One reload runs at a time.
 *
 * Thread: loop, where a function does not say otherwise. Owns: a loaded configuration is the caller's reference. */
#pragma once

#include "config/config.h"

struct daemon;

/* Logs a line for each secret file that every user can read or change, and for each key that has no
 * effect. Thread: loop, or before it runs. */
void daemon_log_warnings(const struct config *c);
/* Loads the configuration at a start, with the registry's last good commit: config_load_with(), and the checks that the
 * certificate and the private key belong together and that finished logs can lie where `logs` says. Messages as there.
 * If that commit is no longer valid, the messages end with a way to start without it. Blocks: before the loop. */
int daemon_load_first_config(const char *path, struct config **ret, struct buf *messages) MUST_CHECK;

/* --check: prints the mistakes on stdout and a summary on stderr. Returns the exit code, 0 or 1. Blocks:
 * before the loop. */
int daemon_check(const char *config_path);

/* SIGHUP: reads every file again, with the registry's commit in force. A call during a reload causes
 * one more reload after it. */
void reload_start(struct daemon *d);
/* Reads every file again, with the registry's files of another commit, checked out in `folder`
 * (copied). Ends with registry_answer(), unless the daemon stops before. */
void reload_try_commit(struct daemon *d, const char *folder);
