#include "model/source_head.h"

#include "base/alloc.h"

void source_head_release(struct source_head *h)
{
	free(h->accelerator);
	free(h->git_url);
	free(h->branch);
	free(h->sha);
	*h = (struct source_head){0};
}
