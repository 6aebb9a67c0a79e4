/* One immutable snapshot of everything that is configured: outpost.yml, the
 * accelerators' files, CRCR's allowlist and the secrets they name.
 *
 * Thread: config_load() reads files, so it runs before the loop or in the pool.
 * A snapshot is never changed; config_ref/unref are atomic. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/private_key.h"
#include "base/secret.h"
#include "config/problems.h"
#include "model/accelerator.h"
#include "model/promotion.h"

/* A Buildkite pipeline that speaks for a repository: contract 2, oidc.issuers.repositories. */
struct oidc_mapping {
	char *key;        /* ORGANIZATION_ID/PIPELINE_ID */
	char *repository; /* owner/name */
	struct oidc_claim {
		char *name;
		char **values; /* NULL-terminated; the claim must equal one */
	} * claims;
	size_t n_claims;
};

struct oidc_issuer {
	char *issuer;
	char *jwks_url;
	struct oidc_mapping *mappings; /* none: the `repository` claim says who calls */
	size_t n_mappings;
};

struct network { /* CIDR; IPv4 as v4-mapped IPv6 */
	uint8_t address[16];
	int prefix_bits; /* 0…128 */
};

struct config {
	char *path; /* outpost.yml as given */

	char *listen;     /* host:port as written */
	char *public_url; /* without a trailing slash */
	char *state_dir;  /* absolute or relative to the working folder */
	char *store;      /* "sqlite" */
	char *tls_certificate_file, *tls_private_key_file; /* both or neither */
	char *tls_certificate_pem;                         /* the file's content */
	struct private_key *tls_private_key;
	struct network *trusted_proxies;
	size_t n_trusted_proxies;
	enum log_level log_level;
	enum log_format log_format;

	char *upstream_repository;
	char **upstream_branches; /* NULL-terminated */
	char *upstream_git_url;

	char *github_api_url; /* without a trailing slash */
	int64_t github_app_id;
	struct secret *github_private_key; /* PEM */
	struct secret *github_webhook_secret;
	int github_writes_per_minute;
	int github_max_concurrent;
	char *oidc_audience;
	struct oidc_issuer *oidc_issuers;
	size_t n_oidc_issuers;

	char *infra_repository;                                 /* NULL: none */
	int64_t infra_repository_id, infra_repository_owner_id; /* pinned; 0: not */
	enum trust infra_trust;

	char **required_suites, **required_must_pass; /* NULL-terminated */
	char *secrets_dir;
	struct network *allow_networks; /* outgoing.allow_networks */
	size_t n_allow_networks;

	struct accelerator *accelerators; /* sorted by name; from files and allowlist */
	size_t n_accelerators;
	char *accelerators_git_url, *accelerators_git_branch, *accelerators_git_path;
	int64_t accelerators_git_interval_ms;
	/* With accelerators.git: the checked-out folder that was read, and its commit; NULL: none
	 * has been fetched yet, see config_is_registry_loaded(). */
	char *accelerators_git_folder, *accelerators_git_commit;

	bool comment_enabled;
	int64_t comment_min_interval_ms;
	int64_t retention_deliveries_ms, retention_logs_ms, retention_results_ms, retention_days_ms;
	int64_t reconcile_interval_ms;
	int64_t schedule_jitter_ms; /* periodic runs start up to so much after their due time */
	int64_t pull_lease_ms;      /* a machine that is silent for so long loses its work */

	int64_t attribution_window_ms; /* how old evidence of flakiness may be */
	int attribution_distance;      /* commits before the merge base that a base run may be */
	bool checks_enabled;
	bool checks_l3_may_fail; /* checks.l3: failure, as CRCR does */
	struct level_thresholds level_3, level_4;
	/* files with secrets that every user of the machine can read or change: no mistake, but to
	 * be warned about; NULL-terminated, NULL: none */
	char **exposed_files;
	struct problems notes; /* what is right but has no effect: no mistake, but worth a look */
};

/* Reads outpost.yml at `path` and all it names. On any mistake returns ERR_INVALID and
 * appends to `messages` every one found, a line each: "file:line: what is wrong". On 0,
 * *ret is a snapshot with one reference. It is right or refused; the only
 * warnings are `exposed_files` and `notes`. */
int config_load(const char *path, struct config **ret, struct buf *messages) MUST_CHECK;

/* Where the files of accelerators.git were checked out: a folder whose name begins with the commit.
 * Neither is used without accelerators.git; with both NULL none of its files is read. */
struct registry_files {
	const char *folder;                   /* this one; NULL: */
	char *(*find)(const char *state_dir); /* the one that this names, free(); NULL: none yet */
};
/* config_load() with them. Messages name them as the repository does,
 * "accelerators.git@1a2b3c4:accelerators.d/x.yml:7: …". */
int config_load_with(const char *path, const struct registry_files *files, struct config **ret,
    struct buf *messages) MUST_CHECK;
/* False while accelerators.git is set and nothing of it could be read yet. */
bool config_is_registry_loaded(const struct config *c);

/* "warning: FILE: …" for each of exposed_files, "note: file:line: …" for each of notes; a line each. */
void config_print_warnings(const struct config *c, FILE *out);

struct config *config_ref(struct config *c);
void config_unref(struct config *c); /* NULL is fine; wipes secrets */

/* Borrowed; NULL when there is none of that name. */
const struct accelerator *config_accelerator(const struct config *c, const char *name);
const struct runner *accelerator_runner(const struct accelerator *a, const char *name);
/* True when `address` (16 bytes, IPv4 mapped) lies in one of the networks. */
bool network_contains(const struct network *list, size_t n, const uint8_t address[16]);
/* True for private, loopback, link-local, unspecified, multicast and other addresses that
 * are not public (IANA special-purpose registries). `address` as above. */
bool network_is_private(const uint8_t address[16]);

/* What only a start takes over: a service runs with these, whatever was read since. */
struct config_fixed {
	char *listen, *state_dir, *store;
	bool has_tls;
};

void config_fixed_init(struct config_fixed *f, const struct config *c);
void config_fixed_release(struct config_fixed *f);
/* Where `c` differs from what runs: the key's name or NULL. Call with i = 0, 1, … until NULL. */
const char *config_needs_restart(const struct config_fixed *running, const struct config *c, int i);

#endif
