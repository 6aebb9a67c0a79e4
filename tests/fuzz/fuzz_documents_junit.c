/* report_file_parse() of JUnit XML. */
#include "report_roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	check_report(REPORT_JUNIT, data, n);
	return 0;
}
