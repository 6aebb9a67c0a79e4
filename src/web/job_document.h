/* A job's results as a report document: `?format=outpost|junit|ctrf` on the job's address. For web/
 * only. Thread: loop. */
#ifndef WEB_JOB_DOCUMENT_H
#define WEB_JOB_DOCUMENT_H

#include "web/web_internal.h"

/* False, and nothing done: no format is asked for. True: r is answered, now or later. */
bool web_answer_job_document(struct web *w, struct http_request *r, int64_t job_id);

#endif
