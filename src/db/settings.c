#include "db/settings.h"

char *setting_text(const struct view *d, const char *key)
{
	return db_text(d, "SELECT value FROM setting WHERE key = ?1", V_TEXT(key));
}

int64_t setting_int(const struct view *d, const char *key, int64_t fallback)
{
	return db_int(d, fallback, "SELECT CAST(value AS INTEGER) FROM setting WHERE key = ?1", V_TEXT(key));
}

void setting_put_text(struct txn *d, const char *key, const char *value)
{
	if (!value)
		db_exec(d, "DELETE FROM setting WHERE key = ?1", V_TEXT(key));
	else
		db_exec(d,
		    "INSERT INTO setting (key, value) VALUES (?1, ?2)"
		    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		    V_TEXT(key), V_TEXT(value));
}

void setting_put_int(struct txn *d, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	setting_put_text(d, key, text);
}

/* ---- operations ---- */

static int put_setting_run(struct store_op *op, struct txn *d)
{
	struct put_setting *p = CONTAINER_OF(op, struct put_setting, op);

	setting_put_text(d, p->key, p->value);
	return 0;
}
STORE_OPERATION(put_setting)

static int share_setting_run(struct store_op *op, struct txn *d)
{
	struct share_setting *p = CONTAINER_OF(op, struct share_setting, op);
	char *known = setting_text(d->view, p->key);

	if (known) {
		explicit_bzero(p->value, strlen(p->value)); /* it may be a secret */
		free(p->value);
		p->value = known;
	} else {
		setting_put_text(d, p->key, p->value);
	}
	return 0;
}
STORE_OPERATION(share_setting)

static int get_setting_run(struct store_query *q, const struct view *d)
{
	struct get_setting *g = CONTAINER_OF(q, struct get_setting, q);

	g->value = setting_text(d, g->key);
	return 0;
}
STORE_QUERY_CLEARED(get_setting, value)
