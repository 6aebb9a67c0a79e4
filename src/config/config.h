/* One immutable snapshot of the whole configuration: outpost.yml, the accelerators' files, CRCR's allowlist, and the
 * secrets that they name.
 *
 * Thread: config_load() and the functions at the end read files: before the loop or in the pool. A snapshot never
 * changes, and config_ref() and config_unref() are atomic: any thread. Owns: each reference, with config_unref(). */
#pragma once

#include "config/network.h"
#include "config/source.h"
#include "model/accelerator.h"

/* A Buildkite pipeline that reports for a repository: github.oidc.issuers.repositories. */
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
	struct oidc_mapping *mappings; /* none: the `repository` claim counts */
	size_t n_mappings;
};

struct config {
	char *path; /* outpost.yml as given */

	char *listen;     /* host:port as written */
	char *public_url; /* without a trailing slash */
	char *state_dir;  /* absolute or relative to the working folder */
	char *store;      /* "sqlite", or the URL of a database of PostgreSQL */
	int store_line;
	struct secret *store_password; /* of its user; NULL: none, or in a file that the URL names */
	char *store_password_file;     /* as for open(), or credential:NAME; NULL: none */
	char *node;                    /* this daemon's name among several on one database; NULL: by host and port */
	/* Where finished logs lie: the database, a folder, or BUCKET or BUCKET/PREFIX of S3; none of them: state_dir */
	bool has_logs_in_database;
	char *logs_folder, *logs_s3;
	int logs_line;
	char *s3_endpoint, *s3_region;                                   /* endpoint without a trailing slash */
	struct secret *s3_access_key, *s3_secret_key, *s3_session_token; /* the token may be NULL */
	char *tls_certificate_file, *tls_private_key_file;               /* both or neither */
	char *tls_certificate_pem;                                       /* the file's content */
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
	int64_t infra_repository_id, infra_repository_owner_id; /* pinned; 0: not pinned */
	enum trust infra_trust;

	char **required_suites, **required_must_pass; /* NULL-terminated */
	char *secrets_dir;
	struct network *allow_networks; /* outgoing.allow_networks */
	size_t n_allow_networks;

	struct accelerator *accelerators; /* sorted by name; from files and allowlist */
	size_t n_accelerators;
	char *accelerators_git_url, *accelerators_git_branch, *accelerators_git_path;
	int64_t accelerators_git_interval_ms;
	/* accelerators.git: the checked-out folder that was read, and its commit; NULL: nothing has
	 * been fetched yet, see config_is_registry_loaded(). */
	char *accelerators_git_folder, *accelerators_git_commit;

	bool comment_enabled;
	int64_t comment_min_interval_ms;
	int64_t retention_deliveries_ms, retention_logs_ms, retention_results_ms, retention_days_ms;
	int64_t reconcile_interval_ms;
	int64_t schedule_jitter_ms; /* a periodic run starts at most this long after its due time */
	int64_t pull_lease_ms;      /* a machine that is silent for this long loses its lease */

	int64_t attribution_window_ms; /* the age up to which evidence of flakiness counts */
	int attribution_distance;      /* the most commits between a base run and the merge base */
	bool checks_enabled;
	bool checks_l3_may_fail; /* checks.l3: failure, as CRCR does */
	struct level_thresholds level_3, level_4;
	/* files with secrets that every user of the machine can read or change: warnings;
	 * NULL-terminated, NULL: none */
	char **exposed_files;
	struct problems notes; /* valid keys that have no effect */
};

/* Reads outpost.yml at `path` and the files that it names. Returns 0 with a snapshot of one reference
 * in *ret, or ERR_INVALID after appending every mistake to `messages`, one line each:
 * "file:line: text". Warnings are in `exposed_files` and `notes`. */
int config_load(const char *path, struct config **ret, struct buf *messages) MUST_CHECK;

/* The folder with the files of accelerators.git; its name begins with the commit. Unused without
 * accelerators.git; with both members NULL, none of its files is read. */
struct registry_files {
	const char *folder; /* or NULL: */
	/* Returns the folder, or NULL: it does not exist yet. free(). */
	char *(*find)(const char *state_dir);
};
/* config_load() with these files. Messages name them like the repository:
 * "accelerators.git@1a2b3c4:accelerators.d/x.yml:7: …". */
int config_load_with(
    const char *path, const struct registry_files *files, struct config **ret, struct buf *messages) MUST_CHECK;
/* False while accelerators.git is set and no commit of it has been read. */
bool config_is_registry_loaded(const struct config *c);

/* "warning: FILE: …" for each of exposed_files, "note: file:line: …" for each of notes; a line each. */
void config_print_warnings(const struct config *c, FILE *out);

struct config *config_ref(struct config *c);
void config_unref(struct config *c); /* NULL is fine; wipes secrets */

/* Borrowed; NULL: no such name. */
const struct accelerator *config_accelerator(const struct config *c, const char *name);
const struct runner *accelerator_runner(const struct accelerator *a, const char *name);

/* The keys that take effect only at a start. */
struct config_fixed {
	char *listen, *state_dir, *store, *node;
	struct secret *store_password;
	char *logs; /* the place and how to reach it */
	bool has_tls;
};

void config_fixed_init(struct config_fixed *f, const struct config *c);
void config_fixed_release(struct config_fixed *f);
/* The name of a key in which `c` differs from the running one. Call it with i = 0, 1, … until NULL. */
const char *config_needs_restart(const struct config_fixed *running, const struct config *c, int i);

/* A snapshot with one reference. Takes over the content, and zeroes it. */
struct config *config_snapshot(struct config *content);
/* Frees the content of a snapshot that was never shared; wipes secrets. */
void config_release(struct config *c);

/* One key of outpost.yml, for programs that talk to the daemon: they need none of its secrets, and
 * must work when the file on disk has a mistake for which the daemon refused it. free() *ret. */
int config_state_dir(const char *path, char **ret, struct error *e) MUST_CHECK;
/* Other programs see the URL on the command line and in the log, so it must have no password. */
bool store_has_password(const char *url);
/* `store` and its password; *ret_url NULL: SQLite. */
int config_store(const char *path, char **ret_url, struct secret **ret_password, struct error *e) MUST_CHECK;
int config_public_url(const char *path, char **ret, struct error *e) MUST_CHECK;
