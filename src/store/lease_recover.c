#include "store/lease_recover.h"

int lease_recover(struct db *d, int64_t now_ms, struct error *e)
{
	if (db_begin(d, DB_WRITER) == 0) {
		db_exec(d, "UPDATE lease SET until_ms = ?1 + lease_ms WHERE state = 'active'",
		    V_INT(now_ms));
		if (db_commit(d) == 0)
			return 0;
	}
	error_set(e, db_status(d), "%s", db_why(d)->text);
	db_rollback(d);
	return db_status(d);
}
