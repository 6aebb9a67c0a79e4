/* Shared by the files of logs/; no other folder includes it. Thread: loop, unless a comment says otherwise. */
#pragma once

#include "logs/log_file.h"
#include "logs/logs.h"
#include "store/log_rows.h"

enum { LOG_BUCKETS = 256 };

/* Blocking work for one job. It runs in the pool after the earlier tasks of the same job; tasks of different jobs
 * run at the same time. */
struct log_task {
	int64_t job_id;
	struct logs *logs;                 /* set by logs_submit() */
	void (*work)(struct log_task *t);  /* in the pool; not run once logs are closing */
	void (*after)(struct log_task *t); /* on the loop, once, never inside logs_submit() */
	bool is_refused;                   /* logs are closing: work did not run */
	/* ---- logs_submit()'s own ---- */
	struct pool_work pool;
	struct log_lane *lane;
	STAILQ_ENTRY(log_task) link;
};
void logs_submit(struct logs *s, struct log_task *t);

/* ---- the other place of finished logs: place_folder.c, place_s3.c, place_database.c ----
 *
 * It has one object for each log, its compressed text (seekable.h), with a name that sorts by the job's id. An object appears
 * as a whole and never changes. Several daemons may use one place, so an object may have been written by another one. */

enum log_place_op { LOG_PUT, LOG_READ, LOG_REMOVE, LOG_LIST };
enum { LOG_LIST_MAX = 1000, LOG_OBJECT_NAME_BYTES = 64 };

struct log_object {
	int64_t job_id, written_ms;
};

/* The caller zero-initialises it, sets the fields for the operation, and owns it until done(). */
struct log_request {
	enum log_place_op op;
	int64_t job_id; /* LIST: the objects after this one, in the order of their names; 0: from the first one */
	int fd;         /* PUT: the whole file is the object; borrowed */
	int64_t at;     /* READ: n bytes from here; -1: the last n bytes, or all of a shorter object */
	size_t n;       /* also out: the number of bytes */
	void (*done)(struct log_request *r); /* once, on the loop, never inside start() */
	/* out; free() bytes and objects */
	int err; /* ERR_NOT_FOUND; ERR_CORRUPT: the object ends before that range; ERR_CLOSING; others: try again */
	struct error why;
	char *bytes; /* READ */
	int64_t object_bytes;
	struct log_object *objects; /* LIST: at most LOG_LIST_MAX */
	size_t n_objects;
	/* ---- place_folder.c's own ---- */
	struct log_task task;
	struct log_place *place;
};

struct log_place {
	void (*start)(struct log_place *p, struct log_request *r);
	void (*use_keys)(struct log_place *p, const struct log_place_options *o); /* NULL: it has none */
	void (*stop)(struct log_place *p); /* ends requests early; NULL: it cannot */
	void (*free)(struct log_place *p); /* NULL: it belongs to another part */
};
int place_folder_new(struct logs *s, const char *path, struct log_place **ret, struct error *e) MUST_CHECK;
int place_folder_check(const char *path, struct error *e) MUST_CHECK;
/* It lists no object: store_drop_logs() drops them with their logs. */
struct log_place *place_database_new(struct logs *s, struct store *store);
void place_database_free(struct log_place *p);
struct log_place *place_s3_new(struct loop *l, const struct log_place_options *o, struct http_client *client);
int place_s3_check(const struct log_place_options *o, struct error *e) MUST_CHECK;
enum { JOBS_OF_A_FOLDER = 1000 };
/* Adds the logs of an answer to ListObjectsV2 to r->objects; ignores everything else. Any thread. */
void place_s3_read_list(const char *xml, size_t n, const char *prefix, struct log_request *r);
/* The object's name: "000012345/12345678.log.zst". Returns out. */
const char *log_object_name(int64_t job_id, char out[LOG_OBJECT_NAME_BYTES]);
/* The job of such a name, or 0. */
int64_t log_object_job(const char *name);

/* The tasks of one job, in order. Freed when the last one is over. */
struct log_lane {
	int64_t job_id;
	STAILQ_HEAD(, log_task) tasks; /* the first one runs */
	LIST_ENTRY(log_lane) link;     /* of the bucket */
};

/* One logs_read(). */
struct log_reading {
	struct log_task task;
	struct log_read *r;
	struct log_state state;
	struct error why;
	struct read_log_pieces pieces; /* growing.c's own */
	/* ---- finished.c's own ---- */
	struct log_place *place;
	struct log_request request;
	struct known_log *log;
	bool was_known; /* its table was not read for this call */
};

struct logs {
	struct loop *loop;
	struct log_folder folder;
	struct finished *finished; /* NULL: finished logs stay */
	LIST_HEAD(, log_lane) lanes[LOG_BUCKETS];
	LIST_HEAD(log_watches, log_watch) watches[LOG_BUCKETS];
	struct packer *packer;
	struct growing *growing; /* NULL: logs grow in state_dir */
	int n_held;              /* tasks and drops that are not over, and the packer's work */
	bool is_closing;
	bool is_freed_soon; /* at the end of this turn */
	void (*on_closed)(void *owner);
	void *closed_owner;
	struct log_limit failed_lines;
	struct logs_stats stats;
};

/* Unfinished work keeps the struct alive. The calls come in pairs. */
void logs_hold(struct logs *s);
void logs_release(struct logs *s);
/* Counts a failure and logs it for the operator. */
void logs_failed(struct logs *s, const char *ev, int64_t job_id, const struct error *why);

/* Reads the log's file, or, if there is none, the other place. */
void log_reading_of_file(struct logs *s, struct log_reading *x);
/* Ends the reading. The error is in r->err and why. */
void log_reading_end(struct logs *s, struct log_reading *x);
/* Ends the append, whose outcome is in a->err and why. */
void log_append_end(
    struct logs *s, struct log_append *a, const struct log_state *before, const struct log_state *after);
void logs_notify_watches(struct logs *s, int64_t job_id);

/* ---- finished.c: moves compressed logs to the other place, one at a time, and reads them there ---- */

struct finished *finished_new(struct logs *s, struct log_place *place);
struct log_place *finished_place(struct finished *f);
/* This job's log is compressed. */
void finished_add(struct finished *f, int64_t job_id);
/* Reads a log that is not here from the place; ends with log_reading_end(). */
void finished_read(struct finished *f, struct log_reading *x, struct log_place *place);
/* The object was removed: forgets it. */
void finished_dropped(struct finished *f, int64_t job_id);
void finished_stop(struct finished *f);
void finished_free(struct finished *f); /* after finished_stop() and its last work; NULL is fine */

/* ---- growing.c: logs that grow in the database ---- */

struct growing *growing_new(struct logs *s, struct store *store);
struct log_place *growing_place(struct growing *g); /* of finished logs in the database */
void growing_append(struct growing *g, struct log_append *a);
void growing_read(struct growing *g, struct log_reading *x);
/* Looks for a finished log, compresses it and moves it to the place; then for the next one. */
void growing_move_next(struct growing *g);
/* Drops the logs that were last written before that time. */
struct growing_drop {
	struct drop_logs op;
	struct logs *logs;
	void (*done)(struct growing_drop *d); /* once, on the loop, never inside the call */
};
void growing_drop_older(struct growing *g, struct growing_drop *d);
void growing_stop(struct growing *g);
void growing_free(struct growing *g); /* after growing_stop() and its last work; NULL is fine */

/* ---- packer.c: compresses complete logs in the pool, one at a time and a few frames in each step, so that a long log
 * neither keeps a thread of the pool for seconds nor makes its readers wait ---- */

/* Looks in the background for logs that an earlier process left uncompressed. */
struct packer *packer_new(struct logs *s);
/* This job's log is complete. */
void packer_add(struct packer *p, int64_t job_id);
/* Tries failed logs again. */
void packer_retry(struct packer *p);
/* The logs are closing: unfinished work is done again after the next start. */
void packer_stop(struct packer *p);
void packer_free(struct packer *p); /* after packer_stop() and its last work; NULL is fine */
