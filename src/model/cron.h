/* Cron texts, in UTC: five fields (minute hour day-of-month month day-of-week) with
 * lists, ranges, steps and English names, or @hourly, @daily, @midnight, @weekly,
 * @monthly, @yearly, @annually. Where both day fields are restricted, either may
 * match; a field that starts with '*' restricts nothing by itself (Vixie's rule). */
#ifndef MODEL_CRON_H
#define MODEL_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cron { /* bit n set: the value n matches */
	uint64_t minutes;
	uint32_t hours, days, months,
	    weekdays; /* days 1…31, months 1…12, weekdays 0…6, 0 = Sunday */
	bool is_any_day, is_any_weekday; /* that field starts with '*' */
};

/* ERR_INVALID with the reason in e (may be NULL); also for a time that never comes,
 * as 30 February. */
int cron_parse(const char *text, struct cron *ret, struct error *e) MUST_CHECK;
/* The first matching minute after after_ms (wall clock, ms since 1970), never
 * after_ms itself. */
int64_t cron_next(const struct cron *c, int64_t after_ms);

#endif
