#include "model/platform_test.h"

#include "base/alloc.h"

enum platform_result platform_test_result(const struct platform_test *t)
{
	if (t->n_failed || t->n_missing)
		return PLATFORM_RED;
	return t->n_passed ? PLATFORM_GREEN : PLATFORM_UNJUDGED;
}

void platform_test_release(struct platform_test *t)
{
	free(t->accelerator);
	free(t->torch);
	free(t->os);
	free(t->head_sha);
	free(t->extension_version);
	*t = (struct platform_test){0};
}
