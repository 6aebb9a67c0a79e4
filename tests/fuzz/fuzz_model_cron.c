/* Any text as a schedule: it is refused with a reason, or it gives due times that increase, each at a minute that its
 * fields name. */

#include "model/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_minute(const struct cron *c, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm t;

	assert(ms % 60000 == 0);
	gmtime_r(&seconds, &t);
	assert(c->minutes >> t.tm_min & 1);
	assert(c->hours >> t.tm_hour & 1);
	assert(c->months >> (t.tm_mon + 1) & 1);
	if (c->is_any_day || c->is_any_weekday)
		assert((c->days >> t.tm_mday & 1) && (c->weekdays >> t.tm_wday & 1));
	else
		assert((c->days >> t.tm_mday & 1) || (c->weekdays >> t.tm_wday & 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error e = {0};
	struct cron c;
	char *text;
	int64_t at = 0;
	int err;

	if (n > 4096 || memchr(data, 0, n))
		return 0;
	text = xstrndup((const char *)data, n);
	err = cron_parse(text, &c, &e);
	if (err)
		assert(err == ERR_INVALID && e.text[0]);
	for (int i = 0; !err && i < 4; i++) {
		int64_t next = cron_next(&c, at);

		assert(next > at);
		check_minute(&c, next);
		at = next;
	}
	free(text);
	return 0;
}
