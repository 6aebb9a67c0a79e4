/* A round: fetching (read the newest commit and write its files into a folder) → trying (the owner
 * checks the files, keeps the folder and puts it in force) → sweeping (remove older folders). One
 * round at a time; a request meanwhile starts one more after it. */
#include "registry/registry.h"

#include <sys/eventfd.h>

#include "model/schedule.h"
#include "registry/fetch.h"

enum {
	FETCH_MAX_MS = 5 * 60 * 1000,
	FETCH_MAX_BYTES = 256 << 20,
	MISTAKES_MAX_BYTES = 64 * 1024,
};

/* ---- the work of a round ---- */

/* The loop prepares it and reads it afterwards; in between, it belongs to the pool. */
struct round {
	struct pool_work work;
	/* set by the loop */
	struct arena texts; /* the other texts that the loop sets */
	char *root;         /* owned */
	char *url, *branch, *path;
	char *name_in_force, *name_refused; /* checkouts that need no new folder; NULL: none */
	int cancel_fd;
	/* set by the pool */
	int err; /* the fetch failed, or a folder could not be written */
	struct error why;
	char commit[65];
	char *name;           /* of that commit's folder */
	struct buf mistakes;  /* why the commit is refused, one line each */
	int64_t good_wall_ms; /* when the commit in force became the good one; 0: unknown */
};

static void round_release(struct round *q)
{
	FREE_ALL(q->root, q->name);
	arena_release(&q->texts);
	buf_release(&q->mistakes);
	*q = (struct round){0};
}

/* Fetches, and writes the folder of a commit that is neither in force nor refused. */
static void round_fetch(struct pool_work *w)
{
	struct round *q = CONTAINER_OF(w, struct round, work);
	struct bounds b = {
	    .deadline_mono_ms = clock_mono_ms() + FETCH_MAX_MS,
	    .n_bytes_left = FETCH_MAX_BYTES,
	    .cancel_fd = q->cancel_fd,
	};
	struct checkout c = {.path = q->path, .root = q->root, .mistakes = &q->mistakes};
	char *path = path_join(q->root, "repo.git");
	int rc = 0;

	if (mkdir(q->root, 0700) != 0 && errno != EEXIST)
		rc = error_set(&q->why, ERR_IO, "%s: %s", q->root, strerror(errno));
	if (!rc) {
		/* Corrects `good` if it does not name the folder in force: the owner kept a commit and then could not
		 * put it in force, or the file was removed. */
		char *good = folder_good(q->root, &q->good_wall_ms);

		if (q->name_in_force && !str_eq(good, q->name_in_force))
			rc = folder_keep(q->root, q->name_in_force, &q->why);
		free(good);
	}
	if (!rc) {
		folder_sweep(q->root, q->name_in_force);
		rc = fetch_setup(&q->why);
	}
	if (!rc)
		rc = fetch_open(path, &c.repo, &q->why);
	if (!rc)
		rc = fetch_branch(c.repo, q->url, q->branch, &b, &c.commit, &q->why);
	if (!rc) {
		git_oid_tostr(q->commit, sizeof(q->commit), &c.commit);
		c.name = q->name = folder_checkout_name(q->commit, q->path);
		if (!str_eq(q->name, q->name_in_force) && !str_eq(q->name, q->name_refused))
			rc = checkout_write(&c, &q->why);
		if (rc == ERR_INVALID)
			rc = 0; /* q->mistakes says why the commit is refused */
	}
	git_repository_free(c.repo);
	/* It is a cache: the next round begins with an empty repository. */
	if (rc == ERR_CORRUPT)
		folder_remove(path);
	q->err = rc;
	free(path);
}

/* Removes all folders but that of the commit in force. */
static void round_sweep(struct pool_work *w)
{
	struct round *q = CONTAINER_OF(w, struct round, work);

	folder_sweep(q->root, q->name);
}

/* ---- the loop ---- */

enum state { IDLE, FETCHING, TRYING, SWEEPING }; /* in this order; each may end in IDLE */

struct registry {
	struct registry_deps deps;
	struct config *config; /* NULL until configured */
	struct registry_status status;
	enum state state;
	struct timer *timer;
	struct round round; /* this round, or the last one; the pool has it in FETCHING and SWEEPING */
	char *refused_name; /* the checkout that was refused; NULL: none */
	int n_failures;     /* failed fetches in a row */
	int cancel_fd;
	bool is_fetch_due, is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

static void registry_enter(struct registry *r, enum state to)
{
	static const char *const names[] = {"idle", "fetching", "trying", "sweeping"};

	if (to != IDLE && to != r->state + 1)
		abort();
	log_event(LOG_DEBUG, "registry_state", LOG_S("from", names[r->state]), LOG_S("to", names[to]));
	r->state = to;
}

/* ---- the end of a round ---- */

static void finish_closing_registry(void *owner)
{
	struct registry *r = owner;

	timer_close(r->timer);
	config_unref(r->config);
	round_release(&r->round);
	close(r->cancel_fd);
	r->on_closed(r->owner);
	FREE_ALL(r->refused_name, r->status.refused_why, r->status.fetch_error, r);
}

static void end_round(struct registry *r)
{
	registry_enter(r, IDLE);
	if (r->is_closing) {
		loop_reap(r->deps.loop, finish_closing_registry, r);
	} else if (r->status.is_used) {
		int64_t after_ms = r->config->accelerators_git_interval_ms;
		int64_t pause_ms = backoff_delay_ms(r->n_failures, 0, random_fraction());

		if (r->n_failures && pause_ms < after_ms)
			after_ms = pause_ms;
		timer_start(r->timer, r->is_fetch_due ? 0 : after_ms);
	}
}

static void set_text(char **field, const char *text)
{
	free(*field);
	*field = xstrdup_or_null(text);
}

static void forget_refused(struct registry *r)
{
	FREE_AND_NULL(r->refused_name);
	FREE_AND_NULL(r->status.refused_why);
	r->status.refused[0] = '\0';
}

static void refuse_commit(struct registry *r, const char *why)
{
	char *copy = xstrdup(why), *line;

	log_event(LOG_ERROR, "registry_refused", LOG_S("commit", r->round.commit), LOG_S("kept", r->status.commit));
	for (char *rest = copy; (line = strsep(&rest, "\n")) != NULL;)
		if (*line)
			log_event(LOG_ERROR, "registry_error", LOG_S("at", line));
	free(copy);
	set_text(&r->refused_name, r->round.name);
	set_text(&r->status.refused_why, why);
	snprintf(r->status.refused, sizeof(r->status.refused), "%s", r->round.commit);
}

static void fail_round(struct registry *r, const char *why)
{
	r->n_failures++;
	set_text(&r->status.fetch_error, why);
	log_event(LOG_WARN, "registry_not_fetched", LOG_S("why", why));
	end_round(r);
}

static void on_swept(struct pool_work *w) { end_round(CONTAINER_OF(w, struct registry, round.work)); }

void registry_answer(struct registry *r, enum registry_answer what, const char *why)
{
	if (r->state != TRYING)
		return;
	switch (what) {
	case REGISTRY_IN_FORCE:
		forget_refused(r);
		snprintf(r->status.commit, sizeof(r->status.commit), "%s", r->round.commit);
		r->status.commit_wall_ms = clock_wall_ms();
		log_event(LOG_INFO, "registry_in_force", LOG_S("commit", r->status.commit),
		    LOG_I("accelerators", (int64_t)r->config->n_accelerators));
		registry_enter(r, SWEEPING);
		r->round.work.work = round_sweep;
		r->round.work.after = on_swept;
		pool_submit(r->deps.loop, &r->round.work);
		break;
	case REGISTRY_REFUSED:
		refuse_commit(r, why);
		end_round(r);
		break;
	case REGISTRY_NOT_KEPT:
		fail_round(r, why);
		break;
	}
}

/* ---- fetching ---- */

/* True if the configuration names this repository, branch and folder. */
static bool is_followed(const struct config *c, const char *url, const char *branch, const char *path)
{
	return c->accelerators_git_url && str_eq(url, c->accelerators_git_url) &&
	       str_eq(branch, c->accelerators_git_branch) && str_eq(path, c->accelerators_git_path);
}

static void on_fetched(struct pool_work *w)
{
	struct registry *r = CONTAINER_OF(w, struct registry, round.work);
	struct round *q = &r->round;

	if (r->is_closing || !is_followed(r->config, q->url, q->branch, q->path)) {
		r->is_fetch_due = true;
		end_round(r);
	} else if (q->err) {
		fail_round(r, q->why.text);
	} else {
		/* After a successful fetch: the commit is in force already, refused before, refused now, or tried. */
		r->n_failures = 0;
		r->status.fetched_wall_ms = clock_wall_ms();
		FREE_AND_NULL(r->status.fetch_error);
		if (!r->status.commit_wall_ms)
			r->status.commit_wall_ms = q->good_wall_ms;
		if (str_eq(q->name, q->name_in_force)) {
			forget_refused(r);
			end_round(r);
		} else if (str_eq(q->name, q->name_refused)) {
			end_round(r); /* still refused; the round has written no folder */
		} else if (q->mistakes.len) {
			refuse_commit(r, buf_str(&q->mistakes));
			end_round(r);
		} else {
			char *folder = path_join(q->root, q->name);

			registry_enter(r, TRYING);
			r->deps.try_commit(r, q->commit, folder, r->deps.owner);
			free(folder);
		}
	}
}

static void on_registry_timer(struct timer *t)
{
	struct registry *r = timer_owner(t);
	const struct config *c = r->config;
	struct round *q = &r->round;

	if (r->state != IDLE || !r->status.is_used)
		return;
	const char *folder = c->accelerators_git_folder;
	const char *slash = folder ? strrchr(folder, '/') : NULL;
	r->is_fetch_due = false;
	timer_stop(r->timer);
	round_release(q);
	q->root = path_join(c->state_dir, "registry");
	q->url = arena_strdup(&q->texts, c->accelerators_git_url);
	q->branch = arena_strdup(&q->texts, c->accelerators_git_branch);
	q->path = arena_strdup(&q->texts, c->accelerators_git_path);
	q->name_in_force = arena_strdup(&q->texts, slash ? slash + 1 : folder);
	q->name_refused = arena_strdup(&q->texts, r->refused_name);
	q->cancel_fd = r->cancel_fd;
	buf_init(&q->mistakes, MISTAKES_MAX_BYTES);
	registry_enter(r, FETCHING);
	q->work.work = round_fetch;
	q->work.after = on_fetched;
	pool_submit(r->deps.loop, &q->work);
}

/* ---- the public functions ---- */

struct registry *registry_new(const struct registry_deps *deps)
{
	struct registry *r = xcalloc(1, sizeof(*r));

	r->deps = *deps;
	r->timer = timer_new(deps->loop, on_registry_timer, r);
	r->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->cancel_fd < 0)
		abort();
	return r;
}

void registry_fetch(struct registry *r)
{
	if (!r->status.is_used || r->is_closing)
		return;
	r->is_fetch_due = true;
	if (r->state == IDLE)
		timer_start(r->timer, 0);
}

void registry_retry(struct registry *r)
{
	forget_refused(r);
	registry_fetch(r);
}

void registry_configure(struct registry *r, struct config *c)
{
	struct config *old = r->config;
	bool is_new = !old || !is_followed(c, old->accelerators_git_url, old->accelerators_git_branch,
				  old->accelerators_git_path);

	r->config = config_ref(c);
	r->status.is_used = c->accelerators_git_url != NULL;
	snprintf(r->status.commit, sizeof(r->status.commit), "%s",
	    c->accelerators_git_commit ? c->accelerators_git_commit : "");
	if (!*r->status.commit)
		r->status.commit_wall_ms = 0;
	config_unref(old);
	if (!r->status.is_used) {
		timer_stop(r->timer);
		forget_refused(r);
		FREE_AND_NULL(r->status.fetch_error);
	} else if (is_new) {
		forget_refused(r);
		registry_fetch(r);
	}
}

const struct registry_status *registry_status(const struct registry *r) { return &r->status; }

void registry_close(struct registry *r, void (*on_closed)(void *owner), void *owner)
{
	const uint64_t one = 1;

	r->is_closing = true;
	r->on_closed = on_closed;
	r->owner = owner;
	if (write(r->cancel_fd, &one, sizeof(one)) != sizeof(one))
		log_event(LOG_WARN, "registry_not_cancelled");
	timer_stop(r->timer);
	if (r->state == IDLE || r->state == TRYING)
		loop_reap(r->deps.loop, finish_closing_registry, r);
}

/* ---- the folder of the last good commit; blocking ---- */

int registry_keep_folder(const char *folder, struct error *e)
{
	const char *slash = strrchr(folder, '/');
	char *root = xstrndup(folder, (size_t)(slash - folder));
	int rc = folder_keep(root, slash + 1, e);

	free(root);
	return rc;
}

char *registry_folder(const char *state_dir)
{
	int64_t since_ms;
	char *root = path_join(state_dir, "registry"), *name = folder_good(root, &since_ms);
	char *folder = name ? path_join(root, name) : NULL;
	struct stat st;

	if (folder && (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)))
		FREE_AND_NULL(folder);
	FREE_ALL(name, root);
	return folder;
}
