#include "db/postgres_text.h"

/* `to` is at most three times as long as `from`. */
static const struct {
	const char *from, *to;
} REPLACED[] = {
    {"CROSS JOIN", "JOIN"},
    {"CAST(", "integer_of("},                     /* postgres_functions.sql: its own CAST refuses what is no number */
    {" AS INTEGER)", ")"}, {" LIKE ", " ILIKE "}, /* in SQLite the case of ASCII letters does not count */
};

static const char INDEX_HINT[] = " INDEXED BY ";

/* The end of the text in quotes that begins here. */
static const char *skip_quoted(const char *s)
{
	const char *end = strchr(s + 1, *s);

	return end ? end + 1 : s + strlen(s);
}

char *postgres_text(const char *sql)
{
	char *text = xmalloc(4 * strlen(sql) + 1), *to = text;

	while (*sql) {
		size_t i = 0, n = 1;

		if (*sql == 'x' && sql[1] == '\'') { /* the bytes of hexadecimal digits */
			n = (size_t)(skip_quoted(sql + 1) - sql);
			to = stpcpy(to, "'\\x");
			to = stpcpy(mempcpy(to, sql + 2, n - 2), "::bytea");
			sql += n;
			continue;
		} else if (*sql == '\'' || *sql == '"') {
			n = (size_t)(skip_quoted(sql) - sql);
		} else if (*sql == '?') {
			*to++ = '$';
			sql++;
			continue;
		} else if (strncmp(sql, INDEX_HINT, strlen(INDEX_HINT)) == 0) {
			sql += strlen(INDEX_HINT);
			sql += strcspn(sql, " )");
			continue;
		} else {
			while (i < ARRAY_LEN(REPLACED) && strncmp(sql, REPLACED[i].from, strlen(REPLACED[i].from)) != 0)
				i++;
			if (i < ARRAY_LEN(REPLACED)) {
				to = stpcpy(to, REPLACED[i].to);
				sql += strlen(REPLACED[i].from);
				continue;
			}
		}
		memcpy(to, sql, n);
		to += n;
		sql += n;
	}
	*to = '\0';
	return text;
}
