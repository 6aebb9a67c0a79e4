#include "model/feed_event.h"

#include <stdlib.h>

#include "base/strv.h"

void feed_event_release(struct feed_event *e)
{
	free(e->accelerator);
	free(e->title);
	free(e->ref);
	free(e->sha);
	free(e->last_good_sha);
	free(e->issue_repository);
	strv_free(e->tests);
	*e = (struct feed_event){0};
}
