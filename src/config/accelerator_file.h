/* accelerators.d/NAME.yml: what one vendor registers, read but with no secret looked up. */
#ifndef CONFIG_ACCELERATOR_FILE_H
#define CONFIG_ACCELERATOR_FILE_H

#include "config/fields.h"
#include "model/accelerator.h"

struct accelerator_file {
	struct accelerator a;     /* runners may be empty: it is hosted in infra.repository */
	struct file_ref *secrets; /* one per runner: the name below secrets/ACCELERATOR/ */
};

extern const struct mapping ACCELERATOR_MAPPING;
extern const struct choice TRUSTS[];

/* Fills *ret; mistakes go to r->problems. Released in any case. */
void accelerator_file_read(struct reader *r, const struct node *root, struct accelerator_file *ret);
void accelerator_file_release(struct accelerator_file *f);
/* What is so when a file says nothing: trust, triggers, deadlines, empty lists. */
void accelerator_set_defaults(struct accelerator *a);

#endif
