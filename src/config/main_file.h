/* outpost.yml after parsing. config.c reads the files that it names later.
 *
 * Thread: any; one thread at a time uses a main_file. Owns: the caller, with main_file_release(). */
#ifndef CONFIG_MAIN_FILE_H
#define CONFIG_MAIN_FILE_H

#include "config/config.h"
#include "config/fields.h"
#include "config/network.h"

struct main_file {
	struct config c; /* without the content of other files */
	struct network_list trusted_proxies, allow_networks;
	struct file_ref tls_certificate, tls_private_key, private_key, webhook_secret;
	struct file_ref state_dir, secrets_dir;
	struct file_ref ci_providers;         /* github.oidc.ci_providers; path NULL: not given */
	struct file_ref directory, allowlist; /* path NULL: not given */
	struct file_ref git;                  /* accelerators.git: only its line */
	bool has_accelerators;                /* directory, git or allowlist is given */
};

extern const struct mapping MAIN_MAPPING; /* the whole grammar */

/* Fills *ret with the defaults and the values of `root`. Mistakes go to r->problems, and reading continues with *ret.
 * Release *ret in any case. */
void main_file_read(struct reader *r, const struct node *root, struct main_file *ret);
void main_file_release(struct main_file *m);

/* ---- registry.c ---- */
/* Reads the files in accelerators.directory or in the checked-out folder of accelerators.git, and the
 * allowlist, with the secrets that they name, into main->c.accelerators, sorted by name. folder: that
 * of outpost.yml. Mistakes go to `problems`. Blocking, in the thread of config_load(). */
void registry_read(const char *folder, struct main_file *main, struct problems *problems);

#endif
