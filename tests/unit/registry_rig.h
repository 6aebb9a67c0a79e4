/* A registry that follows a repository on disk, and an owner that accepts or refuses its commits. */
#pragma once

#include "registry_repo.h"

#include <ftw.h>

#include "config/config.h"
#include "registry/registry.h"

struct rig {
	struct loop *loop;
	struct registry *registry;
	struct timer *look;
	git_repository *repo;
	char folder[64], url[96], state_dir[96];
	const char *path, *refuse_with; /* NULL: accepts it */
	const char *block_with;         /* a folder that is made before a commit is kept; NULL: none */
	int n_tried;
	char tried[65], *tried_folder;
	bool (*until)(struct rig *g);
	bool is_done, is_closed;
};

static inline struct config *rig_config(const struct rig *g, const char *folder)
{
	const char *name = folder ? strrchr(folder, '/') + 1 : NULL;
	struct config c = {
	    .state_dir = xstrdup(g->state_dir),
	    .accelerators_git_url = xstrdup(g->url),
	    .accelerators_git_branch = xstrdup("main"),
	    .accelerators_git_path = xstrdup(g->path),
	    .accelerators_git_interval_ms = 3600 * 1000,
	    .accelerators_git_folder = xstrdup_or_null(folder),
	    .accelerators_git_commit = name ? xstrndup(name, 40) : NULL,
	};

	return config_snapshot(&c);
}

/* Configures as a reload would: with the folder that `folder` names. */
static inline void rig_configure(struct rig *g, const char *folder)
{
	struct config *c = rig_config(g, folder);

	registry_configure(g->registry, c);
	config_unref(c);
}

static inline void rig_try(struct registry *r, const char *commit, const char *folder, void *owner)
{
	struct rig *g = owner;
	struct error e = {0};

	g->n_tried++;
	snprintf(g->tried, sizeof(g->tried), "%s", commit);
	free(g->tried_folder);
	g->tried_folder = xstrdup(folder);
	if (g->refuse_with) {
		registry_answer(r, REGISTRY_REFUSED, g->refuse_with);
		return;
	}
	if (g->block_with)
		assert_int_equal(mkdir(g->block_with, 0700), 0);
	if (registry_keep_folder(folder, &e)) {
		registry_answer(r, REGISTRY_NOT_KEPT, e.text);
		return;
	}
	rig_configure(g, folder);
	registry_answer(r, REGISTRY_IN_FORCE, NULL);
}

static inline void rig_look(struct timer *t)
{
	struct rig *g = timer_owner(t);

	g->is_done = g->until(g);
	if (!g->is_done)
		timer_start(t, 1);
}

/* Runs the loop until the condition holds. */
static inline void rig_until(struct rig *g, bool (*until)(struct rig *g))
{
	g->until = until;
	g->is_done = false;
	timer_start(g->look, 0);
	loop_run_until(g->loop, &g->is_done);
	assert_true(g->is_done);
}

static inline void rig_open_registry(struct rig *g)
{
	const struct registry_deps deps = {.loop = g->loop, .try_commit = rig_try, .owner = g};
	char *folder = registry_folder(g->state_dir);

	g->registry = registry_new(&deps);
	g->is_closed = false;
	rig_configure(g, folder);
	free(folder);
}

static inline void rig_on_closed(void *owner)
{
	struct rig *g = owner;

	g->is_closed = true;
}

static inline void rig_close_registry(struct rig *g)
{
	registry_close(g->registry, rig_on_closed, g);
	assert_false(g->is_closed);
	loop_run_until(g->loop, &g->is_closed);
	g->registry = NULL;
}

static inline int rig_setup(void **state)
{
	struct rig *g = xcalloc(1, sizeof(*g));

	log_setup(LOG_ERROR + 1, LOG_TEXT); /* tests here refuse commits on purpose */
	git_libgit2_init();
	git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0);
	snprintf(g->folder, sizeof(g->folder), "/tmp/outpost-registry-XXXXXX");
	assert_non_null(mkdtemp(g->folder));
	snprintf(g->url, sizeof(g->url), "file://%s/origin.git", g->folder);
	snprintf(g->state_dir, sizeof(g->state_dir), "%s", g->folder);
	assert_int_equal(git_repository_init(&g->repo, g->url + strlen("file://"), 1), 0);
	g->path = "accelerators.d";
	g->loop = loop_new();
	g->look = timer_new(g->loop, rig_look, g);
	*state = g;
	return 0;
}

static inline int rig_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline int rig_teardown(void **state)
{
	struct rig *g = *state;

	if (g->registry)
		rig_close_registry(g);
	timer_close(g->look);
	loop_stop(g->loop);
	loop_run(g->loop);
	loop_free(g->loop);
	git_repository_free(g->repo);
	free(g->tried_folder);
	assert_int_equal(nftw(g->folder, rig_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(g);
	return 0;
}
