/* Old logs go: one subfolder after the other is listed, and each log that looks old is looked at
 * again in its job's order, because a piece may just be written to it. */
#include "base/alloc.h"
#include "base/log.h"
#include "logs/logs_internal.h"

struct dropping {
	struct logs *logs;
	int64_t before_ms;
	int subfolder;
	struct pool_work listing;
	struct log_ids ids;
	size_t at;
	struct log_task task;
	bool is_dropped;
	int err;
	struct error why;
	int64_t n_dropped;
	void (*done)(int64_t n, void *owner);
	void *owner;
};

static void list_next(struct dropping *d);

static void end(struct dropping *d)
{
	struct logs *s = d->logs;
	void (*done)(int64_t n, void *owner) = d->done;
	void *owner = d->owner;
	int64_t n = d->n_dropped;

	free(d);
	done(n, owner);
	logs_let_go(s);
}

static void drop_one(struct log_task *t)
{
	struct dropping *d = CONTAINER_OF(t, struct dropping, task);

	d->err = log_file_drop(&d->logs->folder, t->job_id, d->before_ms, &d->is_dropped, &d->why);
}

static void drop_next(struct dropping *d);

static void after_drop(struct log_task *t)
{
	struct dropping *d = CONTAINER_OF(t, struct dropping, task);

	if (t->is_refused) {
		FREE_AND_NULL(d->ids.list);
		end(d);
		return;
	}
	d->n_dropped += d->is_dropped;
	if (d->err)
		logs_failed(d->logs, "log_not_dropped", t->job_id, &d->why);
	drop_next(d);
}

static void drop_next(struct dropping *d)
{
	if (d->at == d->ids.n) {
		FREE_AND_NULL(d->ids.list);
		list_next(d);
		return;
	}
	d->is_dropped = false;
	d->why = (struct error){0};
	d->task = (struct log_task){
	    .job_id = d->ids.list[d->at++], .work = drop_one, .after = after_drop};
	logs_submit(d->logs, &d->task);
}

static void list_subfolder(struct pool_work *w)
{
	struct dropping *d = CONTAINER_OF(w, struct dropping, listing);

	d->err =
	    log_folder_list_older(&d->logs->folder, d->subfolder, d->before_ms, &d->ids, &d->why);
}

static void after_list(struct pool_work *w)
{
	struct dropping *d = CONTAINER_OF(w, struct dropping, listing);

	d->subfolder++;
	if (d->err)
		logs_failed(d->logs, "logs_not_read", 0, &d->why);
	drop_next(d);
}

static void list_next(struct dropping *d)
{
	if (d->subfolder == LOG_SUBFOLDERS || d->logs->is_closing) {
		end(d);
		return;
	}
	d->ids = (struct log_ids){0};
	d->at = 0;
	d->why = (struct error){0};
	d->listing = (struct pool_work){.work = list_subfolder, .after = after_list};
	pool_submit(d->logs->loop, &d->listing);
}

static void begin(void *p)
{
	list_next(p);
}

void logs_drop_older(
    struct logs *s, int64_t before_wall_ms, void (*done)(int64_t n, void *owner), void *owner)
{
	struct dropping *d = xcalloc(1, sizeof(*d));

	d->logs = s;
	d->before_ms = before_wall_ms;
	d->done = done;
	d->owner = owner;
	logs_hold(s);
	packer_retry(s->packer);
	loop_reap(s->loop, begin, d);
}
