#include "db/notes.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "db/db_driver.h"
#include "db/seats.h"
#include "db/settings.h"
#include "db/store_internal.h"

enum {
	LOOK_MS = 1000, /* polls, and tests of the connection */
	TEST_EVERY_MS = 30 * 1000,
	TEST_LASTS_MS = 3000, /* until the own test must have arrived */
};

/* ---- the text ---- */

void note_text(const char *sender, unsigned topics, const struct store_touched *t, char *out)
{
	size_t n = (size_t)snprintf(out, NOTE_MAX_BYTES, "%s %x%s", sender, topics, t->is_all ? " *" : "");

	/* 32 numbers of 20 digits twice, and 8 names of 64 bytes: it fits */
	for (int i = 0; i < t->n_changes; i++)
		n += (size_t)snprintf(out + n, NOTE_MAX_BYTES - n, " c%" PRId64, t->changes[i]);
	for (int i = 0; i < t->n_jobs; i++)
		n += (size_t)snprintf(out + n, NOTE_MAX_BYTES - n, " j%" PRId64, t->jobs[i]);
	for (int i = 0; i < t->n_accelerators; i++)
		n += (size_t)snprintf(out + n, NOTE_MAX_BYTES - n, " a%s", t->accelerators[i]);
	assert(n < NOTE_MAX_BYTES);
}

static bool add_word(struct store_touched *t, const char *word)
{
	int64_t id = 0;
	bool is_number = parse_int64(word + (*word != '\0'), &id) == 0 && id > 0;

	if (*word == 'c' && is_number)
		touched_add_change(t, id);
	else if (*word == 'j' && is_number)
		touched_add_job(t, id);
	else if (*word == 'a' && word[1])
		touched_add_accelerator(t, word + 1);
	else
		return false;
	return true;
}

bool note_parse(const char *text, const char *sender, unsigned *ret_topics, struct store_touched *ret)
{
	char copy[NOTE_MAX_BYTES], *rest = copy, *word, *end = NULL;
	size_t n = strlen(sender);
	unsigned long topics = 0;

	*ret = (struct store_touched){0};
	*ret_topics = ~0u;
	if (strncmp(text, sender, n) == 0 && (text[n] == ' ' || !text[n]))
		return false;
	if (strlen(text) >= sizeof(copy)) {
		ret->is_all = true;
		return true;
	}
	memcpy(copy, text, strlen(text) + 1);
	strsep(&rest, " "); /* the sender */
	word = strsep(&rest, " ");
	if (word && isxdigit((unsigned char)*word))
		topics = strtoul(word, &end, 16);
	if (!end || *end || topics > UINT_MAX) {
		ret->is_all = true;
		return true;
	}
	*ret_topics = (unsigned)topics;
	while ((word = strsep(&rest, " ")) != NULL)
		if (!add_word(ret, word))
			ret->is_all = true;
	return true;
}

/* ---- sending ---- */

struct notes {
	struct store *store;
	char sender[NOTE_SENDER_BYTES]; /* of this process; constant */
	_Atomic int64_t epoch;          /* of the last batch */

	/* loop thread */
	struct announcement {
		struct store_op op;
		unsigned topics;
	} announcement;
	unsigned to_announce; /* topics for the next one */
	bool is_announcing, is_stopped;

	/* listening thread */
	struct db *db; /* NULL: not connected */
	pthread_t thread;
	int wake_fd;            /* readable: stop */
	int64_t tested_mono_ms; /* the last test was sent then; 0: none since the connection */
	int64_t heard_mono_ms;  /* the last test that arrived; 0: none */
	bool is_polling;
	int64_t n_batches, pushed_ms; /* of the other nodes, and REGISTRY_PUSHED, at the last poll */
	struct remote_note *gathered; /* NULL: nothing */
	struct log_limit lost_lines;
};

struct remote_note {
	struct inbox_item item;
	struct store *store;
	unsigned topics;
	struct store_touched touched;
};

void notes_send(struct notes *n, struct db *d, unsigned topics)
{
	char text[NOTE_MAX_BYTES];

	if (!n)
		return;
	atomic_store_explicit(&n->epoch, db_epoch(d), memory_order_relaxed);
	if (!topics && touched_is_empty(db_touched(d)))
		return;
	note_text(n->sender, topics, db_touched(d), text);
	db_note(db_txn(d), text);
}

/* The setting with the time of the last push to accelerators.git. Nodes that get no notes poll it. */
static const char REGISTRY_PUSHED[] = "registry.pushed_ms";

static int announcement_run(struct store_op *op, struct txn *d)
{
	unsigned topics = CONTAINER_OF(op, struct announcement, op)->topics;

	if (topics & STORE_REGISTRY)
		setting_put_int(d, REGISTRY_PUSHED, db_now_ms(d));
	db_notify(d, topics);
	return 0;
}
static STORE_INDEPENDENT(announcement)

    static void announce_next(struct notes *n);

static void on_announced(struct store_op *op)
{
	struct notes *n = CONTAINER_OF(op, struct notes, announcement.op);

	n->is_announcing = false;
	if (op->err) /* the next announcement has them, too */
		n->to_announce |= n->announcement.topics;
	else if (!n->is_stopped)
		announce_next(n);
}

static void announce_next(struct notes *n)
{
	if (!n->to_announce || n->is_announcing)
		return;
	n->announcement = (struct announcement){
	    .op = {.done = on_announced, .retry.event = "announcement_unsent"}, .topics = n->to_announce};
	n->to_announce = 0;
	n->is_announcing = store_announcement(n->store, &n->announcement) == 0;
}

void store_announce(struct store *s, unsigned topics)
{
	if (!s->notes) {
		store_notify(s, topics, NULL);
		return;
	}
	s->notes->to_announce |= topics;
	announce_next(s->notes);
}

/* ---- listening ---- */

static void on_remote_note(struct inbox_item *item)
{
	struct remote_note *note = CONTAINER_OF(item, struct remote_note, item);
	struct store *s = note->store;

	if (!s->is_closing) {
		s->stats.n_writes++;
		if (note->topics & STORE_SEATS)
			seats_ring(s->seats);
		store_notify(s, note->topics, &note->touched);
	}
	free(note);
}

/* Adds to the note that the loop gets after this look. */
static void gather(struct notes *n, unsigned topics, const struct store_touched *t)
{
	if (!n->gathered) {
		n->gathered = xcalloc(1, sizeof(*n->gathered));
		n->gathered->item.on_loop = on_remote_note;
		n->gathered->store = n->store;
	}
	n->gathered->topics |= topics;
	touched_merge(&n->gathered->touched, t);
}

static void gather_everything(struct notes *n) { gather(n, ~0u, &(struct store_touched){.is_all = true}); }

static void on_note(const char *text, void *owner)
{
	struct notes *n = owner;
	struct store_touched touched;
	unsigned topics;

	if (note_parse(text, n->sender, &topics, &touched))
		gather(n, topics, &touched);
	else if (!strchr(text, ' ')) /* the test */
		n->heard_mono_ms = clock_mono_ms();
}

static void log_lost_notes(struct notes *n, const char *why)
{
	int64_t n_skipped;

	if (log_limit_pass(&n->lost_lines, clock_mono_ms(), &n_skipped))
		log_event(LOG_WARN, "notes_lost", LOG_S("error", why), LOG_I("more", n_skipped));
}

static bool connect_listener(struct notes *n)
{
	const struct store *s = n->store;
	struct error why = {0};

	if (db_open_with_password(s->path, s->password, DB_LISTENER, &n->db, &why) == 0)
		db_limit_silence(n->db, NODE_ANSWER_MS);
	if (n->db && db_listen(n->db) == 0) {
		n->tested_mono_ms = n->heard_mono_ms = 0;
		gather_everything(n); /* notes may have been lost */
		return true;
	}
	log_lost_notes(n, n->db ? db_why(n->db)->text : why.text);
	db_close(n->db);
	n->db = NULL;
	return false;
}

/* Sends a note to itself now and then. While it does not arrive, the batches of the other nodes are counted instead; when it no longer
 * arrives, the connection is made again. False: so it is. */
static bool test_notes(struct notes *n)
{
	int64_t now_ms = clock_mono_ms();
	bool is_heard = n->heard_mono_ms && n->heard_mono_ms >= n->tested_mono_ms;

	if (is_heard && n->is_polling) {
		n->is_polling = false;
		log_event(LOG_INFO, "notes_arrive");
	}
	if (n->tested_mono_ms && !is_heard && now_ms - n->tested_mono_ms > TEST_LASTS_MS) {
		if (n->heard_mono_ms)
			return false;
		if (!n->is_polling)
			log_event(LOG_WARN, "notes_do_not_arrive",
			    LOG_S("consequence", "other daemons' changes are noticed every second only"));
		n->is_polling = true;
	}
	if (!n->tested_mono_ms || now_ms - n->tested_mono_ms > TEST_EVERY_MS) {
		n->tested_mono_ms = now_ms;
		db_note(db_txn(n->db), n->sender);
	}
	return true;
}

static void poll_batches(struct notes *n)
{
	int64_t me = atomic_load_explicit(&n->epoch, memory_order_relaxed);
	int64_t n_batches = db_int(n->db, 0,
	    "SELECT (SELECT COALESCE(SUM(batch), 0) FROM node WHERE epoch <> ?1)"
	    " + (SELECT COALESCE(SUM(batch), 0) FROM node_independent WHERE epoch <> ?1)",
	    V_INT(me));

	int64_t pushed_ms = setting_int(db_view(n->db), REGISTRY_PUSHED, 0);

	/* A batch does not say what it changed. Those of beats, of rounds of seats and of shared limits ring no topic that causes such a batch,
	 * or the nodes would ring each other for ever. */
	if (n_batches != n->n_batches)
		gather(n, ~(unsigned)(STORE_LIMITS | STORE_SEATS | STORE_NODE | STORE_REGISTRY),
		    &(struct store_touched){.is_all = true});
	if (pushed_ms != n->pushed_ms)
		gather(n, STORE_REGISTRY, &(struct store_touched){.is_all = false});
	n->n_batches = n_batches;
	n->pushed_ms = pushed_ms;
}

/* Waits for the descriptor. False: the thread shall stop. */
static bool pause_notes(const struct notes *n, int64_t ms)
{
	struct pollfd p = {.fd = n->wake_fd, .events = POLLIN};

	return poll(&p, 1, (int)ms) <= 0;
}

static void *notes_main(void *p)
{
	struct notes *n = p;

	while (pause_notes(n, 0)) {
		bool is_good = n->db || connect_listener(n);

		if (is_good) {
			is_good = test_notes(n);
			if (n->is_polling)
				poll_batches(n);
			is_good = is_good && db_wait_notes(n->db, n->wake_fd, LOOK_MS, on_note, n) == 0;
		} else {
			pause_notes(n, LOOK_MS);
		}
		if (n->gathered)
			inbox_post(n->store->inbox, &n->gathered->item);
		n->gathered = NULL;
		if (!is_good && n->db) {
			log_lost_notes(n, db_why(n->db)->text);
			db_close(n->db);
			n->db = NULL;
		}
	}
	db_close(n->db);
	return NULL;
}

/* ---- life ---- */

struct notes *notes_new(struct store *s)
{
	struct notes *n;
	uint8_t bytes[8];

	if (!db_is_server(s->path))
		return NULL;
	n = xcalloc(1, sizeof(*n));
	n->store = s;
	n->lost_lines.longest_ms = LOG_LONGEST_PAUSE_MS;
	random_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), n->sender);
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(n->wake_fd >= 0);
	thread_start(&n->thread, notes_main, n);
	return n;
}

void notes_stop(struct notes *n)
{
	if (!n)
		return;
	n->is_stopped = true;
	eventfd_write(n->wake_fd, 1);
}

void notes_wait(struct notes *n)
{
	if (n)
		pthread_join(n->thread, NULL);
}

void notes_free(struct notes *n)
{
	if (!n)
		return;
	close(n->wake_fd);
	free(n->gathered);
	free(n);
}
