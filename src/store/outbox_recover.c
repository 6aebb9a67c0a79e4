#include "store/outbox_recover.h"

/* The lock on the state directory says that whoever was sending is dead. A request that
 * was dropped while it was under way is not sent again. That it was tried stays on record, but not
 * how often: our own death is no failure of GitHub's, and the next real one must not wait for it. */
int outbox_recover(struct db *d, struct error *e)
{
	if (db_begin(d, DB_WRITER) == 0) {
		db_exec(d,
		    "UPDATE outbox SET state = 'cancelled', owner = NULL, lease_until_ms = NULL"
		    " WHERE state = 'sending' AND is_dropped = 1 AND " OUTBOX_IS_COUNTED);
		db_exec(d, "UPDATE outbox SET state = 'due', is_uncertain = 1, n_attempts = 1,"
			   " owner = NULL, lease_until_ms = NULL WHERE state = 'sending' "
			   "AND " OUTBOX_IS_COUNTED);
		if (db_commit(d) == 0)
			return 0;
	}
	error_set(e, db_status(d), "%s", db_why(d)->text);
	db_rollback(d);
	return db_status(d);
}
