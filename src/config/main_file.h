/* outpost.yml, read but with nothing looked up yet: the files it names are read after it. */
#ifndef CONFIG_MAIN_FILE_H
#define CONFIG_MAIN_FILE_H

#include "config/config.h"
#include "config/fields.h"
#include "config/network.h"

struct main_file {
	struct config c; /* without what comes from other files */
	struct network_list trusted_proxies, allow_networks;
	struct file_ref tls_certificate, tls_private_key, private_key, webhook_secret;
	struct file_ref state_dir, secrets_dir;
	struct file_ref ci_providers;         /* github.oidc.ci_providers; path NULL: not given */
	struct file_ref directory, allowlist; /* path NULL: not given */
	struct file_ref git;                  /* accelerators.git: only its line */
	bool has_accelerators;                /* directory, git or allowlist is given */
};

extern const struct mapping MAIN_MAPPING; /* the whole grammar */

/* Fills *ret with what `root` says over the defaults. Mistakes go to r->problems; *ret
 * is complete enough to read on and is released in any case. */
void main_file_read(struct reader *r, const struct node *root, struct main_file *ret);
void main_file_release(struct main_file *m);

#endif
