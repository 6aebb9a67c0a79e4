/* outpost.yml after parsing. config.c reads the files that it names later.
 *
 * Thread: any; one thread at a time uses a main_file. Owns: the caller, with main_file_release(). */
#pragma once

#include "config/config.h"
#include "config/fields.h"
#include "config/network.h"

struct main_file {
	struct config c; /* without the content of other files */
	struct network_list trusted_proxies, allow_networks;
	struct file_ref store_password, tls_certificate, tls_private_key, private_key, webhook_secret;
	struct file_ref state_dir, secrets_dir;
	struct file_ref logs, s3_access_key, s3_secret_key;
	int s3_line;                          /* 0: s3 is not given */
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

/* ---- oidc.c: github.oidc, the trusted issuers of tokens, and the repository that each pipeline reports for. Any thread; it
 * does not open other files. Owns: the struct config, or the caller with oidc_issuer_release() ---- */

extern const struct mapping OIDC_ISSUER_MAPPING;
field_read_fn field_issuers; /* target: struct config */

/* Adds GitHub Actions, for a configuration without issuers. */
void oidc_default_issuers(struct config *c);
void oidc_issuer_release(struct oidc_issuer *i);

/* Reads CRCR's ci_providers.yml like that relay does (pytorch/test-infra,
 * aws/lambda/cross_repo_ci_relay/config/ci_providers.yml): the repositories of the pipelines of a CI
 * service whose tokens name none. The file only maps pipelines; it cannot add an issuer or its keys.
 *
 * Fills *ret with the issuer that has mappings in the file, Buildkite. Without a mapping it must not
 * be used, because Outpost trusts the `repository` claim of an issuer without mappings. Mistakes go to
 * r->problems. oidc_issuer_release() it in any case. */
void ci_providers_read(struct reader *r, const struct node *root, struct oidc_issuer *ret);
/* Adds it to the issuers of outpost.yml, and takes over its content. Mistakes that only both files
 * together make are reported in outpost.yml (r->file), at the key's `line`. */
void ci_providers_add(struct reader *r, int line, struct config *c, struct oidc_issuer *from);
