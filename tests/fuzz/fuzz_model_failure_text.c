/* Any message: what it is compared by is bounded, one line, and itself when it is normalised again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/failure_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text, *once, *twice;
	bool is_generic;

	if (n > 4096 || memchr(data, 0, n))
		return 0;
	text = xstrndup((const char *)data, n);
	once = failure_text_normalise(text);
	twice = failure_text_normalise(once);
	is_generic = failure_text_is_generic(text);
	assert(strlen(once) <= 512);
	assert(strcmp(once, twice) == 0);
	for (const char *p = once; *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 0x7f);
	if (utf8_is_valid(text, n))
		assert(utf8_is_valid(once, strlen(once)));
	assert(is_generic == failure_text_is_generic(once));
	assert(is_generic == (failure_text_key(text) == 0));
	assert(failure_text_key(text) == failure_text_key(once));
	free(twice);
	free(once);
	free(text);
	return 0;
}
