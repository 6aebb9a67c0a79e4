/* Checks of single values: names, branches, globs, URLs. A check that fails writes the requirement in words that follow
 * "must be".
 *
 * Thread: any; a check does not read files or resolve names. Owns: a reader only borrows. */
#pragma once

#include "config/network.h"
#include "config/source.h"

struct mapping;

/* The file that is being read, and the limits for it. */
struct reader {
	const char *file; /* for messages */
	struct problems *problems;
	struct problems *notes;             /* valid keys that have no effect; NULL: not collected */
	const char *path;                   /* of the map being read; for messages */
	const struct mapping *root;         /* the file's outermost map, once reading has begun */
	const struct network_list *allowed; /* outgoing.allow_networks; NULL: none */
};

/* Reports a mistake at a line of the file that is being read. */
#define refuse_at(r, line, ...) problem_add((r)->problems, (r)->file, (line), __VA_ARGS__)

enum { WHY_BYTES = 240 };

/* True: `s` is valid; else `why` is the requirement: "owner/name". */
typedef bool check_fn(const struct reader *r, const char *s, char why[WHY_BYTES]);

check_fn check_line;          /* one line of text: no control characters */
check_fn check_text;          /* several lines of it: also tabs */
check_fn check_name;          /* [a-z0-9-], begins and ends with a letter or digit */
check_fn check_repository;    /* owner/name */
check_fn check_login;         /* a GitHub login, with or without @ */
check_fn check_branch;        /* a git branch */
check_fn check_glob;          /* paths as triggers match them */
check_fn check_cron;          /* model/schedule.h */
check_fn check_test;          /* SUITE/TEST */
check_fn check_suite;         /* no slash */
check_fn check_store;         /* a back end that is built in */
check_fn check_logs;          /* state_dir, a folder, or s3://BUCKET or s3://BUCKET/PREFIX */
check_fn check_pipeline;      /* ORGANIZATION_ID/PIPELINE_ID */
check_fn check_secret_name;   /* one file name below secrets/ACCELERATOR */
check_fn check_workflow;      /* .github/workflows/x.yml */
check_fn check_listen;        /* host:port */
check_fn check_relative_path; /* a folder inside a git repository */

check_fn check_service_url; /* the operator's: https, or http to this host or network */
check_fn check_public_url;  /* the beginning of links: http or https, without a query */
check_fn check_link_url;    /* shown to people: https */
check_fn check_vendor_url;  /* a vendor's: https to a public host; else see `allowed` */
check_fn check_source_url;  /* a vendor's git repository: the same, and git:// as http:// is */

/* Removes the slashes at the end; NULL is fine. */
void url_cut_slashes(char *url);

/* ---- outpost-runner's file ---- */
check_fn check_server_url; /* https, or http to loopback */
check_fn check_git_url;    /* a URL or path for git fetch; never a helper's name or an option */
check_fn check_proxy_url;  /* an http, https or SOCKS proxy */

/* For a check: writes the requirement to why, and returns false. */
bool check_failed(char why[WHY_BYTES], const char *requirement);
