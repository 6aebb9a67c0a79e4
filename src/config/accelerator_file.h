/* accelerators.d/NAME.yml, one vendor's file: its grammar and reading it. Its secrets are read later.
 * Thread: any; it does not open other files. Owns: the caller, with accelerator_file_release(). */
#pragma once

#include "config/fields.h"
#include "model/accelerator.h"

struct accelerator_file {
	struct accelerator a;     /* without runners, infra.repository runs it */
	struct file_ref *secrets; /* one for each runner: the name below secrets/ACCELERATOR/ */
	size_t n_secrets;
};

extern const struct mapping ACCELERATOR_MAPPING;
extern const struct choice TRUSTS[];

/* Fills *ret; mistakes go to r->problems. accelerator_file_release() it in any case. */
void accelerator_file_read(struct reader *r, const struct node *root, struct accelerator_file *ret);
void accelerator_file_release(struct accelerator_file *f);
/* Sets the defaults of a file: trust, triggers, deadlines, empty lists. */
void accelerator_set_defaults(struct accelerator *a);
