/* jwks_parse(): an accepted text is a bounded set of named keys, each found by its name. */

#include "runners/issuer_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = xmemdup(data, n);
	struct jwks set;

	if (jwks_parse(text, n, &set, NULL) == 0) {
		assert(set.n > 0 && set.n <= JWKS_KEYS_MAX);
		for (size_t i = 0; i < set.n; i++)
			assert(jwks_find(&set, set.keys[i].kid) && set.keys[i].kid[0]);
		jwks_release(&set);
	}
	free(text);
	return 0;
}
