/* report_file_parse() of Outpost JSON. */
#include "report_roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_report(REPORT_OUTPOST, data, n);
	return 0;
}
