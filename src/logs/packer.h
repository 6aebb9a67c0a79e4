/* Compresses complete logs in the pool, one at a time and a few frames a step, so that a long
 * log neither keeps a thread of the pool for seconds nor makes its readers wait.
 *
 * Thread: loop, every function. */
#ifndef LOGS_PACKER_H
#define LOGS_PACKER_H

#include <stdint.h>

struct logs;
struct packer;

/* Looks in the background for logs that an earlier process left uncompressed. */
struct packer *packer_new(struct logs *s);
/* This job's log is complete. */
void packer_add(struct packer *p, int64_t job_id);
/* Tries once more what failed, if anything did. */
void packer_retry(struct packer *p);
/* Logs are closing: what is not finished is done again after the next start. */
void packer_stop(struct packer *p);
void packer_free(struct packer *p); /* stopped, and logs let go of; NULL is fine */

#endif
