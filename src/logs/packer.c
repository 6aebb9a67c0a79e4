#include "logs/logs_internal.h"

#include "logs/seekable.h"

enum {
	FRAMES_A_STEP = 16, /* 4 MiB: about 20 ms */
	LEVEL = 3,
};

struct packer {
	struct logs *logs;
	struct compressor *compressor;
	struct log_ids waiting; /* from `at` on; failed ones come last */
	size_t at;
	bool is_paused; /* the last one failed: goes on after packer_retry() */
	bool is_busy;   /* a task has the fields below */
	bool is_stopped;

	int64_t job_id;
	struct pool_work work;
	struct log_task publishing;
	struct log_ids found; /* uncompressed logs at the start */
	int in, out;          /* -1: not open */
	int64_t n_read;
	struct seekable_writer writer;
	char *text; /* one frame's */
	bool is_written;
	int err;
	struct error why;
};

static void pack_next(struct packer *p);

static void queue_log(struct packer *p, int64_t job_id)
{
	struct log_ids *w = &p->waiting;

	if (p->at > 0 && p->at == w->n)
		p->at = w->n = 0;
	*ARRAY_PUSH(w->list, w->n) = job_id;
}

/* ---- one log ---- */

/* Compresses the next frames. In the pool. */
static void pack_step(struct pool_work *work)
{
	struct packer *p = CONTAINER_OF(work, struct packer, work);
	const struct log_folder *folder = &p->logs->folder;
	size_t n = LOG_FRAME_BYTES;
	int rc = 0;

	if (p->in < 0)
		rc = log_file_open_done(folder, p->job_id, &p->in, &p->why);
	if (!rc && !p->text) {
		p->text = xmalloc(LOG_FRAME_BYTES);
		p->n_read = 0;
		rc = log_file_open_compressing(folder, &p->out, &p->why);
		seekable_writer_init(&p->writer, p->out, p->compressor);
	}
	for (int i = 0; i < FRAMES_A_STEP && !rc && n == LOG_FRAME_BYTES; i++) {
		rc = file_io_read(p->in, p->text, LOG_FRAME_BYTES, p->n_read, &n);
		if (!rc && n)
			rc = seekable_add(&p->writer, p->text, n);
		p->n_read += (int64_t)n;
	}
	if (!rc && n < LOG_FRAME_BYTES) {
		rc = seekable_end(&p->writer);
		if (!rc && fsync(p->out))
			rc = ERR_IO;
		p->is_written = !rc;
	}
	p->err = rc;
}

/* On the loop: the log is compressed, or it failed. */
static void finish_packing(struct packer *p)
{
	struct logs *s = p->logs;

	if (p->in >= 0)
		close(p->in);
	if (p->out >= 0)
		close(p->out);
	p->in = p->out = -1;
	seekable_writer_release(&p->writer);
	FREE_AND_NULL(p->text);
	p->is_busy = false;
	if (!p->err) {
		s->stats.n_packed++;
		if (s->finished)
			finished_add(s->finished, p->job_id);
	} else if (p->err != ERR_NOT_FOUND) {
		error_set(&p->why, p->err, "%s/compressing: %s", s->folder.path, err_text(p->err));
		logs_failed(s, "log_not_compressed", p->job_id, &p->why);
		queue_log(p, p->job_id);
		p->is_paused = true;
	}
	pack_next(p);
	logs_release(s);
}

static void publish_log(struct log_task *t)
{
	struct packer *p = CONTAINER_OF(t, struct packer, publishing);

	p->err = log_file_publish(&p->logs->folder, p->job_id, &p->why);
}

static void after_publish(struct log_task *t)
{
	struct packer *p = CONTAINER_OF(t, struct packer, publishing);

	if (t->is_refused)
		p->err = ERR_NOT_FOUND; /* no failure: the next start finds the log again */
	finish_packing(p);
}

static void after_step(struct pool_work *work)
{
	struct packer *p = CONTAINER_OF(work, struct packer, work);

	if (p->is_stopped && !p->err)
		p->err = ERR_NOT_FOUND;
	if (p->err) {
		finish_packing(p);
	} else if (p->is_written) {
		p->publishing = (struct log_task){.job_id = p->job_id, .work = publish_log, .after = after_publish};
		logs_submit(p->logs, &p->publishing);
	} else {
		pool_submit(p->logs->loop, &p->work);
	}
}

static void pack_next(struct packer *p)
{
	if (p->is_busy || p->is_stopped || p->is_paused || p->at == p->waiting.n)
		return;
	p->is_busy = true;
	p->job_id = p->waiting.list[p->at++];
	p->err = 0;
	p->why = (struct error){0};
	p->is_written = false;
	p->work = (struct pool_work){.work = pack_step, .after = after_step};
	logs_hold(p->logs);
	pool_submit(p->logs->loop, &p->work);
}

/* ---- logs that an earlier process left ---- */

static void find_uncompressed(struct pool_work *work)
{
	struct packer *p = CONTAINER_OF(work, struct packer, work);

	for (int i = 0; i < LOG_SUBFOLDERS && !p->err; i++)
		p->err = log_folder_list(&p->logs->folder, i, LOGS_TO_COMPRESS, &p->found, &p->why);
}

static void after_search(struct pool_work *work)
{
	struct packer *p = CONTAINER_OF(work, struct packer, work);
	struct logs *s = p->logs;

	for (size_t i = 0; i < p->found.n; i++)
		queue_log(p, p->found.list[i]);
	FREE_AND_NULL(p->found.list);
	p->is_busy = false;
	if (p->err)
		logs_failed(s, "logs_not_read", 0, &p->why);
	pack_next(p);
	logs_release(s);
}

struct packer *packer_new(struct logs *s)
{
	struct packer *p = xcalloc(1, sizeof(*p));

	p->logs = s;
	p->in = p->out = -1;
	p->compressor = compressor_new(LEVEL);
	compressor_add_checksums(p->compressor);
	p->work = (struct pool_work){.work = find_uncompressed, .after = after_search};
	p->is_busy = true;
	logs_hold(s);
	pool_submit(s->loop, &p->work);
	return p;
}

void packer_add(struct packer *p, int64_t job_id)
{
	queue_log(p, job_id);
	packer_retry(p);
}

void packer_retry(struct packer *p)
{
	p->is_paused = false;
	pack_next(p);
}

void packer_stop(struct packer *p) { p->is_stopped = true; }

void packer_free(struct packer *p)
{
	if (!p)
		return;
	compressor_free(p->compressor);
	free(p->waiting.list);
	free(p);
}
