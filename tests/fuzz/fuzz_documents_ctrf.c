/* report_file_parse() of CTRF JSON. */
#include "report_roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_report(REPORT_CTRF, data, n);
	return 0;
}
