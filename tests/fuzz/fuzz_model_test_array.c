/* test_array_read() accepts only what the tree accepts, and reads the same from it. */
#include "test_array_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = xmemdup(data, n);

	check_test_array(text, n);
	free(text);
	return 0;
}
