#include "db/postgres_text.h"

/* `to` is at most three times as long as `from`. */
static const struct {
	const char *from, *to;
} REPLACED[] = {
    {"CROSS JOIN", "JOIN"},
    {"CAST(", "integer_of("},                     /* postgres_functions.sql: its own CAST refuses what is no number */
    {" AS INTEGER)", ")"}, {" LIKE ", " ILIKE "}, /* in SQLite the case of ASCII letters does not count */
};

static const char INDEX_HINT[] = " INDEXED BY ", JOB_TEST[] = "job_test ";

/* The end of the text in quotes that begins here. */
static const char *skip_quoted(const char *s)
{
	const char *end = strchr(s + 1, *s);

	return end ? end + 1 : s + strlen(s);
}

/* The tests of some jobs: "job_test r ON r.job_id = j.id" becomes a subquery for each job, because the server passes no condition of a
 * join into the view job_test, and would unpack the results of all jobs. OFFSET keeps the planner from undoing that. Returns how much
 * of sql is done. */
static size_t put_tests_of_job(const char *sql, char **to)
{
	const char *alias = sql + strlen(JOB_TEST), *at = alias + strcspn(alias, " "), *job;
	size_t n = (size_t)(at - alias);

	if (strncmp(at, " ON ", 4) != 0 || strncmp(at + 4, alias, n) != 0 || strncmp(at + 4 + n, ".job_id = ", 10) != 0)
		return 0;
	job = at + 4 + n + 10;
	*to = stpcpy(*to, "LATERAL (SELECT * FROM job_test WHERE job_id = ");
	*to = mempcpy(*to, job, strcspn(job, " )"));
	*to = stpcpy(*to, " OFFSET 0) ");
	return strlen(JOB_TEST);
}

char *postgres_text(const char *sql)
{
	/* put_tests_of_job() makes less than four times as much of what it reads */
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
		} else if (strncmp(sql, JOB_TEST, strlen(JOB_TEST)) == 0 && (i = put_tests_of_job(sql, &to)) > 0) {
			sql += i;
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
