#include "db/seats.h"

#include "db/db_driver.h"
#include "db/record_rows.h"
#include "db/settings.h"
#include "db/store_internal.h"
#include "loop/bell.h"

enum {
	ROUND_MS = 3000,
	DRAIN_MS = 200,  /* until the next look whether a part has drained */
	RETRY_MS = 1000, /* a round that failed, or none was possible */
	EXPIRY_MS = 500, /* how often the own clock is asked whether a seat has expired */
	PARTS_MAX = 16,
	LEASE_MARGIN_MS = 1000, /* a node stops so much earlier than another one begins */
	ERROR_MAX_MS = 500,     /* of a measured time */
	TOO_FAR_MS = 5 * 1000,  /* a lease that lasts longer than this beyond its length is of another clock */
};

static const char *const seat_names[] = {
#define X(e, name) name,
    SEATS(X)
#undef X
};

const char *seat_name(enum seat seat) { return seat_names[seat]; }

/* ---- the decision ---- */

bool seat_node_lives(const struct seat_node *node, int64_t now_ms)
{
	int64_t ago_ms = now_ms - node->seen_ms;

	return ago_ms < SEAT_NODE_LIVES_MS && ago_ms > -SEAT_NODE_LIVES_MS;
}

static uint64_t add_to_hash(uint64_t hash, const char *text)
{
	do /* with the end of the text */
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	while (*text++);
	return hash;
}

/* FNV-1a, and then a mix of all bits, because the last character would hardly change the high ones. */
static uint64_t score_of(const char *seat, const struct seat_node *node)
{
	uint64_t hash = add_to_hash(add_to_hash(UINT64_C(0xcbf29ce484222325), seat), node->name);

	hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
	hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return hash ^ hash >> 33;
}

/* Two nodes with one name are a daemon before and after its restart: the later one is preferred. */
static bool is_preferred(
    const struct seat_node *node, uint64_t score, const struct seat_node *other, uint64_t other_score)
{
	if (node->schema_version != other->schema_version)
		return node->schema_version > other->schema_version;
	return score != other_score ? score > other_score : node->epoch > other->epoch;
}

const struct seat_node *seat_target(const char *seat, const struct seat_nodes *nodes, int64_t now_ms)
{
	const struct seat_node *best = NULL;
	uint64_t best_score = 0;

	for (size_t i = 0; i < nodes->n; i++) {
		const struct seat_node *node = &nodes->at[i];
		uint64_t score = score_of(seat, node);

		if (!seat_node_lives(node, now_ms) || (best && !is_preferred(node, score, best, best_score)))
			continue;
		best = node;
		best_score = score;
	}
	return best;
}

static bool is_seat_free(const struct seat_question *q)
{
	return !q->holder || !q->until_ms || q->unchanged_ms >= SEAT_LEASE_MS;
}

enum seat_step seat_decide(const struct seat_question *q)
{
	const struct seat_node *target = seat_target(q->seat, q->nodes, q->now_ms);
	bool is_ours = target && target->epoch == q->me;

	if (q->holder == q->me && q->until_ms)
		return is_ours || !target || q->has_jumped ? SEAT_RENEW : q->is_idle ? SEAT_RELEASE : SEAT_DRAIN;
	return is_ours && !q->has_jumped && is_seat_free(q) ? SEAT_TAKE : SEAT_LEAVE;
}

/* ---- rows ---- */

RECORD_DEFINE(seat_node, SEAT_NODE_RECORD);

#define SEAT_ROW_RECORD(F, S)                                                                                          \
	F(S, WORD_OF_SEAT, seat, NULL, "name", "A name of a later release has no value.")                              \
	F(S, INT, epoch, NULL, "epoch", "")                                                                            \
	F(S, INT, until_ms, NULL, "until_ms", "")
static const struct words seat_words = {seat_names, N_SEATS};
#define RECORD_C_WORD_OF_SEAT enum seat
#define RECORD_T_WORD_OF_SEAT RECORD_WORD, &seat_words
RECORD_LOCAL(seat_row, SEAT_ROW_RECORD)

static void read_seat_rows(const struct view *d, struct seat_row rows[N_SEATS])
{
	struct rows *r = db_rows(d, RECORD_QUERY(SEAT_ROW_RECORD, "FROM seat"));

	for (int i = 0; i < N_SEATS; i++)
		rows[i] = (struct seat_row){.seat = (enum seat)i};
	while (rows_next(r)) {
		struct seat_row row;

		record_read(r, &seat_row_record, &row);
		if (row.seat < N_SEATS)
			rows[row.seat] = row;
	}
}

void seat_nodes_read(const struct view *d, int64_t now_ms, struct seat_nodes *ret)
{
	struct seat_row rows[N_SEATS];

	*ret = (struct seat_nodes){0};
	RECORDS_READ(db_rows(d, RECORD_QUERY(SEAT_NODE_RECORD, "FROM node WHERE gone_ms IS NULL ORDER BY name, epoch")),
	    seat_node, ret->at, ret->n);
	read_seat_rows(d, rows);
	for (size_t i = 0; i < ret->n; i++)
		for (int s = 0; s < N_SEATS; s++)
			ret->at[i].has_seat[s] =
			    !db_is_shared(d) || (rows[s].epoch == ret->at[i].epoch && rows[s].until_ms > now_ms);
}

bool seat_is_anothers(const struct view *d, enum seat seat, int64_t me, int64_t now_ms)
{
	struct seat_row rows[N_SEATS];
	int64_t left_ms;

	read_seat_rows(d, rows);
	left_ms = rows[seat].until_ms - now_ms;
	return rows[seat].epoch != me && left_ms > 0 && left_ms <= SEAT_LEASE_MS + TOO_FAR_MS &&
	       db_has(d, "SELECT 1 FROM node WHERE epoch = ?1 AND gone_ms IS NULL", V_INT(rows[seat].epoch));
}

void seat_nodes_release(struct seat_nodes *l) { RECORDS_RELEASE(seat_node, l->at, l->n); }

/* ---- the database's time ---- */

/* The database's time against the own monotonic clock: by how much it is ahead, and how far this may be wrong. */
struct time_measure {
	int64_t ahead_ms, error_ms;
};

static struct time_measure measure_time(const struct view *d)
{
	int64_t begin_ms = clock_mono_ms(), now_ms = db_now_ms(d), end_ms = clock_mono_ms();

	return (struct time_measure){
	    .ahead_ms = now_ms - begin_ms - (end_ms - begin_ms) / 2, .error_ms = (end_ms - begin_ms) / 2 + 2};
}

/* A measurement that agrees with the last one changes nothing, so that the clock runs evenly, unless it is far more exact. One that took
 * long says too little, because this process may have been stopped meanwhile: it returns false. Thread: loop. */
static bool follow_time(struct time_measure now)
{
	static struct time_measure last;
	int64_t off_ms = now.ahead_ms > last.ahead_ms ? now.ahead_ms - last.ahead_ms : last.ahead_ms - now.ahead_ms;

	if (last.error_ms && 2 * now.error_ms > last.error_ms) {
		if (now.error_ms > ERROR_MAX_MS)
			return false;
		if (off_ms <= now.error_ms + last.error_ms)
			return true;
	}
	last = now;
	clock_follow(now.ahead_ms);
	return true;
}

void seats_learn_time(struct db *d)
{
	struct time_measure now;

	if (!db_is_shared(d))
		return;
	now = measure_time(db_view(d));
	if (!db_status(d))
		follow_time(now);
}

/* ---- a round: everything that the keeper reads and writes ---- */

/* The rows as this node has seen them, since when by its own clock. */
struct seat_sights {
	struct seat_sight {
		int64_t epoch, until_ms, since_mono_ms;
	} of[N_SEATS];
};

struct seat_round {
	struct store_op op;
	/* in */
	bool is_first, is_leaving; /* it gives everything up */
	bool is_after_jump;        /* the stored times may be of the clock before */
	bool is_idle[N_SEATS];
	int64_t ahead_ms;          /* clock_wall_ms() against the monotonic clock */
	struct seat_sights sights; /* in: of the round before */
	/* out */
	int64_t epoch;         /* of the node that holds the seats */
	int64_t begin_mono_ms; /* of this attempt: the leases last from then on at least */
	enum seat_step steps[N_SEATS];
	int n_alive;
	struct time_measure time;
	bool has_jumped; /* the database's clock, since the round before */
	int64_t clock_generation;
};

/* Whether the row is ours afterwards. */
static bool write_seat(struct txn *d, const struct seat_row *row, enum seat_step step, int64_t me, int64_t until_ms)
{
	const char *name = seat_names[row->seat];

	switch (step) {
	case SEAT_LEAVE:
		return false;
	case SEAT_TAKE: /* only in the state that was read: another node may take it at the same time */
		return db_exec_count(d,
			   "INSERT INTO seat (name, epoch, until_ms) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE"
			   " SET epoch = excluded.epoch, until_ms = excluded.until_ms"
			   " WHERE seat.epoch = ?4 AND seat.until_ms = ?5",
			   V_TEXT(name), V_INT(me), V_INT(until_ms), V_INT(row->epoch), V_INT(row->until_ms)) > 0;
	case SEAT_RENEW:
	case SEAT_DRAIN:
		return db_exec_count(d, "UPDATE seat SET until_ms = ?3 WHERE name = ?1 AND epoch = ?2", V_TEXT(name),
			   V_INT(me), V_INT(until_ms)) > 0;
	case SEAT_RELEASE:
		db_exec(d, "UPDATE seat SET until_ms = 0 WHERE name = ?1 AND epoch = ?2", V_TEXT(name), V_INT(me));
		db_notify(d, STORE_SEATS);
		return false;
	}
	return false;
}

/* After the rows were read. */
static void update_sights(struct seat_sights *s, const struct seat_row rows[N_SEATS])
{
	int64_t mono_ms = clock_mono_ms();

	for (int i = 0; i < N_SEATS; i++)
		if (s->of[i].epoch != rows[i].epoch || s->of[i].until_ms != rows[i].until_ms)
			s->of[i] = (struct seat_sight){rows[i].epoch, rows[i].until_ms, mono_ms};
}

static int seat_round_run(struct store_op *op, struct txn *d)
{
	struct seat_round *r = CONTAINER_OF(op, struct seat_round, op);
	struct seat_nodes nodes;
	struct seat_row rows[N_SEATS];
	int64_t now_ms, until_ms, jump_ms, me = db_epoch(d);

	r->epoch = me;
	r->begin_mono_ms = clock_mono_ms();
	r->time = measure_time(d->view);
	r->clock_generation = setting_int(d->view, CLOCK_GENERATION, 1);
	r->n_alive = 0;
	now_ms = r->begin_mono_ms + r->time.ahead_ms -
		 r->time.error_ms; /* rather too early, and the end of a lease rather too late */
	until_ms = now_ms + 2 * r->time.error_ms + SEAT_LEASE_MS;
	jump_ms = r->time.ahead_ms - r->ahead_ms;
	r->has_jumped = jump_ms > CLOCK_JUMP_MS || jump_ms < -CLOCK_JUMP_MS;
	seat_nodes_read(d->view, now_ms, &nodes);
	read_seat_rows(d->view, rows);
	update_sights(&r->sights, rows);
	for (size_t i = 0; i < nodes.n; i++)
		r->n_alive += seat_node_lives(&nodes.at[i], now_ms);
	for (int i = 0; i < N_SEATS; i++) {
		struct seat_question q = {.seat = seat_names[i],
		    .me = me,
		    .holder = rows[i].epoch,
		    .until_ms = rows[i].until_ms,
		    .unchanged_ms = r->begin_mono_ms - r->sights.of[i].since_mono_ms,
		    .is_idle = r->is_idle[i],
		    .nodes = &nodes,
		    .now_ms = now_ms,
		    .has_jumped = r->has_jumped || r->is_after_jump};

		r->steps[i] = !r->is_leaving                   ? seat_decide(&q)
			      : q.holder == q.me && q.until_ms ? SEAT_RELEASE
							       : SEAT_LEAVE;
		if (!write_seat(d, &rows[i], r->steps[i], me, until_ms))
			r->steps[i] = SEAT_LEAVE;
	}
	if (r->is_first) /* the others hand over what belongs here */
		db_notify(d, STORE_SEATS);
	seat_nodes_release(&nodes);
	return 0;
}
static STORE_INDEPENDENT(seat_round)

    /* ---- the keeper ---- */

    struct seats {
	struct store *store;
	struct timer *round_timer, *expiry_timer;
	struct seat_round round;
	bool is_running, is_rung, is_stopped, has_begun;
	int n_alive;
	int64_t epoch;                         /* that holds them */
	int64_t clock_epoch, clock_generation; /* of the last round that knew the time */
	int64_t jumped_mono_ms;                /* when the last round found a jump; 0: none did */
	struct held_seat {
		int64_t until_mono_ms; /* by the own clock; 0: it is not ours */
		bool is_drained;       /* ours, but its parts begin nothing */
		bool is_notified;      /* its parts know that they have it */
	} held[N_SEATS];
	struct seat_part parts[PARTS_MAX];
	int n_parts;
};

bool store_has_seat(const struct store *s, enum seat seat)
{
	const struct held_seat *h = s->seats ? &s->seats->held[seat] : NULL;

	return !h || (!h->is_drained && h->until_mono_ms > clock_mono_ms() && s->seats->epoch == store_epoch(s));
}

int store_n_nodes(const struct store *s) { return s->seats && s->seats->n_alive > 1 ? s->seats->n_alive : 1; }

int64_t store_clock_epoch(const struct store *s) { return s->seats ? s->seats->clock_epoch : 0; }

int64_t store_clock_generation(const struct store *s) { return s->seats ? s->seats->clock_generation : 0; }

/* Tells the parts of each seat that came or went. */
static void tell_parts(struct seats *k)
{
	for (int seat = 0; seat < N_SEATS; seat++) {
		bool has_seat = store_has_seat(k->store, (enum seat)seat);

		if (k->held[seat].is_notified == has_seat)
			continue;
		k->held[seat].is_notified = has_seat;
		log_event(LOG_INFO, has_seat ? "seat_taken" : "seat_left", LOG_S("seat", seat_names[seat]));
		for (int i = 0; i < k->n_parts; i++)
			if (k->parts[i].seat == (enum seat)seat && k->parts[i].on_seat)
				k->parts[i].on_seat((enum seat)seat, has_seat, k->parts[i].owner);
	}
}

static bool is_seat_idle(const struct seats *k, enum seat seat)
{
	for (int i = 0; i < k->n_parts; i++) {
		const struct seat_part *p = &k->parts[i];

		if (p->seat == seat && p->is_idle && !p->is_idle(seat, p->owner))
			return false;
	}
	return true;
}

static void on_round(struct store_op *op);

static void begin_round(struct seats *k)
{
	k->is_rung = k->is_running;
	if (k->is_running)
		return;
	k->round = (struct seat_round){.op.done = on_round,
	    .is_first = !k->has_begun,
	    .is_leaving = k->is_stopped,
	    .is_after_jump = k->jumped_mono_ms && clock_mono_ms() - k->jumped_mono_ms < SEAT_LEASE_MS,
	    .ahead_ms = clock_wall_ms() - clock_mono_ms(),
	    .sights = k->round.sights};
	for (int i = 0; i < N_SEATS; i++)
		k->round.is_idle[i] = k->held[i].is_drained && is_seat_idle(k, (enum seat)i);
	k->is_running = store_seat_round(k->store, &k->round) == 0;
	if (!k->is_running && !k->is_stopped)
		timer_start(k->round_timer, RETRY_MS);
}

/* The time first, because a part that begins writes it. A clock that jumped is found by the epoch and the generation of the round before,
 * so that the jump is applied neither by a node that was given up meanwhile, nor again after another node has applied it. */
static void apply_round(struct seats *k)
{
	const struct seat_round *r = &k->round;
	struct store *s = k->store;
	bool is_draining = false, knows_time = follow_time(r->time);

	if (s->before_submit)
		s->before_submit(s->before_submit_owner);
	k->epoch = r->epoch;
	if (knows_time) {
		k->clock_epoch = r->epoch;
		k->clock_generation = r->clock_generation;
	}
	if (r->has_jumped)
		k->jumped_mono_ms = r->begin_mono_ms;
	for (int i = 0; i < N_SEATS; i++) {
		bool is_ours = r->steps[i] != SEAT_LEAVE && r->steps[i] != SEAT_RELEASE;

		k->held[i].until_mono_ms = is_ours ? r->begin_mono_ms + SEAT_LEASE_MS - LEASE_MARGIN_MS : 0;
		k->held[i].is_drained = r->steps[i] == SEAT_DRAIN;
		is_draining |= k->held[i].is_drained;
	}
	timer_start(k->round_timer, is_draining ? DRAIN_MS : ROUND_MS);
	tell_parts(k);
	if (!r->has_jumped && !r->is_after_jump && k->n_alive != r->n_alive) {
		k->n_alive = r->n_alive;
		store_notify(s, STORE_NODE, NULL);
	}
}

static void on_round(struct store_op *op)
{
	struct seats *k = CONTAINER_OF(op, struct seats, round.op);

	k->is_running = false;
	if (k->is_stopped)
		return;
	k->has_begun |= !op->err;
	if (op->err) /* the seats that are held expire soon */
		timer_start(k->round_timer, RETRY_MS);
	else
		apply_round(k);
	if (k->is_rung)
		begin_round(k);
}

static void on_round_timer(struct timer *t) { begin_round(timer_owner(t)); }

static void on_expiry_timer(struct timer *t)
{
	timer_start(t, EXPIRY_MS);
	tell_parts(timer_owner(t));
}

void store_add_part(struct store *s, const struct seat_part *part)
{
	struct seats *k = s->seats;

	if (!k) /* it has its seat for ever */
		return;
	assert(k->n_parts < PARTS_MAX);
	k->parts[k->n_parts++] = *part;
}

struct seats *seats_new(struct store *s)
{
	struct seats *k;

	if (!db_is_server(s->path))
		return NULL;
	k = xcalloc(1, sizeof(*k));
	k->store = s;
	k->round_timer = timer_new(s->loop, on_round_timer, k);
	k->expiry_timer = timer_new(s->loop, on_expiry_timer, k);
	timer_start(k->round_timer, 0);
	timer_start(k->expiry_timer, EXPIRY_MS);
	return k;
}

void seats_ring(struct seats *k)
{
	if (k && !k->is_stopped)
		begin_round(k);
}

void seats_stop(struct seats *k)
{
	if (!k)
		return;
	timer_close(k->round_timer);
	timer_close(k->expiry_timer);
	k->is_stopped = true;
	memset(k->held, 0, sizeof(k->held)); /* another node may take them from now on */
	/* else the operation that runs has taken or renewed seats at most, which expire */
	if (!k->is_running)
		begin_round(k);
}

void seats_free(struct seats *k) { free(k); }
