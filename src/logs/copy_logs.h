/* Copies all logs between the folder of a daemon on SQLite (log_file.h) and the database of daemons on PostgreSQL (store/log_rows.h). Each copy is
 * whole or not there, and is read once more and compared. A copy that is there already stays. Logs in a folder or bucket of `logs` stay
 * where they are.
 *
 * Thread: the caller's, which owns the connection; blocking. The caller holds the locks that keep daemons away from the folder and the database. */
#pragma once

#include "db/copy.h"

struct logs_copy {
	const char *state_dir;
	struct db *db;
	void (*on_step)(int64_t n, int64_t total, void *owner);
	void *owner;
	/* out */
	int64_t n;
	struct copy_digest digest; /* of the logs' bytes */
};
int logs_copy_to_database(struct logs_copy *c, struct error *e) MUST_CHECK;
int logs_copy_to_folder(struct logs_copy *c, struct error *e) MUST_CHECK;
