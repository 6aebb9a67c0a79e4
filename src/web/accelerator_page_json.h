/* One accelerator's page and its lists as JSON (docs/api.md). For web/ only. Thread: any; new
 * references. */
#ifndef WEB_ACCELERATOR_PAGE_JSON_H
#define WEB_ACCELERATOR_PAGE_JSON_H

#include "base/json.h"
#include "config/config.h"
#include "store/accelerator_page.h"
#include "store/number_days.h"

/* At L1 it shows who it is, and nothing that was tested. */
json_t *accelerator_page_json(
    const struct config *c, const struct accelerator *a, const struct get_accelerator_page *p);
json_t *page_jobs_json(const struct page_jobs *l, const char *public_url);
/* The cursor of what is behind them; null: nothing. */
json_t *page_jobs_next(const struct page_jobs *l);
json_t *numbers_json(const struct list_numbers *l, int64_t days);

#endif
