/* Bodies of heartbeats and returns: accepted values are within their bounds. The first byte selects one of the two. */

#include "model/runner_protocol.h"
#include "runners/leases.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *body = n ? xmemdup(data + 1, n - 1) : NULL;
	char *reason = NULL;
	int wait_s;

	if (n == 0)
		return 0;
	if (data[0] == 'w' && lease_wait_parse(body, n - 1, &wait_s, NULL) == 0)
		assert(wait_s >= 0 && wait_s <= RENEW_WAIT_MAX_S);
	if (data[0] != 'w' && lease_reason_parse(body, n - 1, &reason, NULL) == 0) {
		assert(utf8_is_valid(reason, strlen(reason)));
		assert(!strpbrk(reason, "\n\r\t\033"));
	}
	free(reason);
	free(body);
	return 0;
}
