#include "model/backoff.h"

int64_t backoff_delay_ms(int n_attempts, int64_t retry_after_ms, double random01)
{
	int64_t ceiling = BACKOFF_FIRST_MS, delay;

	for (int i = 0; i < n_attempts && ceiling < BACKOFF_LONGEST_MS; i++)
		ceiling *= 2;
	if (ceiling > BACKOFF_LONGEST_MS)
		ceiling = BACKOFF_LONGEST_MS;
	/* Between half and all of the ceiling: spread out, but never at once. */
	delay = ceiling / 2 + (int64_t)((double)(ceiling - ceiling / 2) * random01);
	if (delay < BACKOFF_FIRST_MS)
		delay = BACKOFF_FIRST_MS;
	return delay > retry_after_ms ? delay : retry_after_ms;
}

bool backoff_is_over(int64_t first_ms, int64_t next_ms)
{
	return next_ms - first_ms > BACKOFF_GIVE_UP_MS;
}
