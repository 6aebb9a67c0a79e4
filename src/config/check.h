/* What one written value must look like: names, branches, globs, URLs. Each check
 * either finds nothing wrong or says, in words that follow "must be", what it wants.
 *
 * Thread: any; no file or name is looked up. */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "config/network.h"
#include "config/problems.h"

struct mapping;

/* Who reads which file, and what it may reach. */
struct reader {
	const char *file; /* for messages */
	struct problems *problems;
	struct problems *notes;     /* what is right but has no effect; NULL: not asked for */
	const char *path;           /* of the map being read; for messages */
	const struct mapping *root; /* the file's outermost map, once reading has begun */
	const struct network_list *allowed; /* outgoing.allow_networks; NULL: none */
};

enum { WHY_BYTES = 240 };

/* True when `s` is right; else `why` is what it must be: "owner/name". */
typedef bool check_fn(const struct reader *r, const char *s, char why[WHY_BYTES]);

check_fn check_line;          /* one line of text: no control characters */
check_fn check_text;          /* several lines of it: also tabs */
check_fn check_name;          /* [a-z0-9-], begins and ends with a letter or digit */
check_fn check_repository;    /* owner/name */
check_fn check_login;         /* a GitHub login, with or without @ */
check_fn check_branch;        /* a git branch */
check_fn check_glob;          /* paths as triggers match them */
check_fn check_cron;          /* model/cron.h */
check_fn check_test;          /* SUITE/TEST */
check_fn check_suite;         /* no slash */
check_fn check_store;         /* a back end that is built in */
check_fn check_pipeline;      /* ORGANIZATION_ID/PIPELINE_ID */
check_fn check_secret_name;   /* one file name below secrets/ACCELERATOR */
check_fn check_workflow;      /* .github/workflows/x.yml */
check_fn check_listen;        /* host:port */
check_fn check_relative_path; /* a folder inside a git repository */

check_fn check_service_url; /* the operator's: https, or http to this host or network */
check_fn check_public_url;  /* what links start with: http or https, without a query */
check_fn check_link_url;    /* shown to people: https */
check_fn check_vendor_url;  /* a vendor's: https to a public host; else see `allowed` */
check_fn check_source_url;  /* a vendor's git repository: the same, and git:// as http:// is */

#endif
