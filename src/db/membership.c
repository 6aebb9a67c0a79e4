/* This store's place among the daemons: the lock of its state directory, its beats, and whether it may act. */
#include <sys/file.h>

#include "db/store_internal.h"

/* ---- one daemon for each state directory ----
 *
 * On its file, all nodes before this one have ended (db/nodes.h). The lock ends with the process, however that ends. Its file has the
 * process and, on PostgreSQL, its epoch, so that the next process knows which node has ended. */

/* The daemon starts without the text when the disk is full. */
static bool write_lock_text(int fd, int64_t epoch)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%ld\n%lld\n", (long)getpid(), (long long)epoch);

	return (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n) || errno == ENOSPC;
}

int store_lock_folder(const char *state_dir, int *ret_fd, int64_t *ret_ended_epoch, struct error *e)
{
	char *path = path_join(state_dir, "lock"), text[64], *epoch;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;
	bool is_locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0, is_taken = fd >= 0 && errno == EWOULDBLOCK;
	ssize_t n = is_locked || is_taken ? pread(fd, text, sizeof(text) - 1, 0) : 0;

	text[n > 0 ? n : 0] = '\0';
	epoch = text + strcspn(text, "\n");
	if (is_locked) {
		*ret_ended_epoch = strtoll(epoch, NULL, 10);
		if (!write_lock_text(fd, *ret_ended_epoch))
			rc = error_set(e, ERR_IO, "%s: %m", path);
	} else if (is_taken) {
		*epoch = '\0';
		rc = error_set(e, ERR_EXISTS, "%s: another outpostd uses this directory (process %s)", path,
		    text[0] ? text : "unknown");
	} else {
		rc = error_set(e, ERR_IO, "%s: %m", path);
	}
	if (rc && fd >= 0)
		close(fd);
	else if (!rc)
		*ret_fd = fd;
	free(path);
	return rc;
}

/* ---- this node among others ---- */

enum { BEAT_LOOK_MS = 1000 };

int64_t store_epoch(const struct store *s) { return atomic_load(&s->node.epoch); }

const char *store_node_name(const struct store *s) { return s->node_name; }

bool store_is_shared(const struct store *s) { return s->node.is_shared; }

bool store_is_acting(const struct store *s)
{
	return !s->node.is_shared || clock_mono_ms() - atomic_load(&s->node.seen_mono_ms) < NODE_SILENT_MS;
}

int store_check_writable(const struct store *s, struct error *e)
{
	if (!s->node.is_shared || (s->stats.is_writable && store_is_acting(s)))
		return 0;
	if (!s->stats.is_writable)
		return error_set(e, s->failure.code, "%s", s->failure.text);
	return error_set(
	    e, ERR_TIMEOUT, "PostgreSQL: the server has not confirmed a commit for %d s", NODE_SILENT_MS / 1000);
}

/* In the lock's file, for the next process. */
static void record_epoch(const struct store *s)
{
	if (!write_lock_text(s->lock_fd, store_epoch(s)))
		log_event(LOG_WARN, "lock_not_written", LOG_S("error", strerror(errno)));
}

static void log_acting(const struct store *s, bool is_acting)
{
	struct error why = {0};

	if (is_acting)
		log_event(LOG_WARN, "node_acts_again", LOG_S("node", s->node_name), LOG_I("epoch", store_epoch(s)),
		    LOG_S("consequence", "this daemon reaches the database again, and sends again"));
	else if (store_check_writable(s, &why))
		log_event(LOG_WARN, "node_is_silent", LOG_S("node", s->node_name), LOG_I("epoch", store_epoch(s)),
		    LOG_S("why", why.text),
		    LOG_S("consequence",
			"this daemon sends nothing and answers webhooks with 503 until it reaches the database; after"
			" 25 s the other daemons take its work over"));
}

void membership_look(struct store *s)
{
	bool is_acting = store_is_acting(s);

	if (is_acting == s->was_acting && s->known_epoch == store_epoch(s))
		return;
	if (is_acting != s->was_acting)
		log_acting(s, is_acting);
	s->was_acting = is_acting;
	if (s->known_epoch != store_epoch(s))
		record_epoch(s);
	s->known_epoch = store_epoch(s);
	store_notify(s, STORE_NODE, NULL);
}

/* Each deciding transaction is a beat, too, so an idle node only needs this one. If the node is fenced, the operation goes to the
 * writer that decides, which registers a new epoch first. */
static int beat_run(struct store_op *op, struct txn *d)
{
	struct store *s = op->store;

	s->beat_mono_ms = clock_mono_ms();
	if (op->class == OP_INDEPENDENT && !node_beat(&s->node, d))
		op->class = OP_DECIDES;
	return 0;
}

static void beat_done(struct store_op *op)
{
	struct store *s = op->store;

	s->is_beating = false;
	if (!op->err)
		node_seen(&s->node, s->beat_mono_ms);
	if (!s->is_closing)
		membership_look(s);
}

static void on_beat_timer(struct timer *t)
{
	struct store *s = timer_owner(t);

	timer_start(t, BEAT_LOOK_MS);
	membership_look(s);
	store_probe(s); /* so that is_writable is right within a second, also without traffic */
	if (s->is_beating || clock_mono_ms() - atomic_load(&s->node.seen_mono_ms) < NODE_BEAT_MS)
		return;
	s->beat.run = beat_run;
	s->beat.done = beat_done;
	s->beat.class = OP_INDEPENDENT;
	s->is_beating = store_submit(s, &s->beat) == 0;
}

void membership_start(struct store *s)
{
	s->known_epoch = store_epoch(s);
	s->was_acting = true;
	if (!s->node.is_shared)
		return;
	record_epoch(s);
	s->beat_timer = timer_new(s->loop, on_beat_timer, s);
	timer_start(s->beat_timer, BEAT_LOOK_MS);
}
