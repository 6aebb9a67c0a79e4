/* skim() against jansson: both accept the same texts, and read the same values. */

#include "../unit/skim_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *body = xmalloc(n + 1);
	const char *wrong;

	if (n)
		memcpy(body, data, n);
	body[n] = '\0';
	wrong = skim_disagrees(body, n);
	if (wrong) {
		fprintf(stderr, "skim %s\n", wrong);
		abort();
	}
	free(body);
	return 0;
}
