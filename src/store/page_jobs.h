/* What store/view_accelerator_*.c share. */
#ifndef STORE_PAGE_JOBS_H
#define STORE_PAGE_JOBS_H

#include "store/accelerator_page.h"
#include "store/db.h"

/* Thread: reader. before_id 0: from the newest. */
void page_jobs_read(
    struct db *d, const char *accelerator, int64_t before_id, int limit, struct page_jobs *ret);

#endif
