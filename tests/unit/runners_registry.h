/* A small registry in memory: the accelerators for which callers may report in the tests of runners/. */
#pragma once

#include "config/config.h"

#define TEXT(s) ((char[]){s})
#define GITHUB_RUNNER(repo, file)                                                                                      \
	((struct runner[]){{.name = TEXT("ci"), .kind = RUNNER_GITHUB, .repository = TEXT(repo), .workflow = file}})

/* By name, as in a snapshot. `bound-a` and `bound-b` share a repository. */
#define REGISTRY_ACCELERATORS                                                                                          \
	{                                                                                                              \
	    .name = TEXT("bound-a"),                                                                                   \
	    .level = LEVEL_2,                                                                                          \
	    .n_runners = 1,                                                                                            \
	    .runners = GITHUB_RUNNER("bound/bound", TEXT(".github/workflows/a.yml")),                                  \
	},                                                                                                             \
	    {                                                                                                          \
		.name = TEXT("bound-b"),                                                                               \
		.level = LEVEL_2,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners = GITHUB_RUNNER("bound/bound", TEXT(".github/workflows/b.yml")),                              \
	    },                                                                                                         \
	    {                                                                                                          \
		.name = TEXT("hosted"),                                                                                \
		.level = LEVEL_2,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners =                                                                                             \
		    (struct runner[]){                                                                                 \
			{.name = TEXT("infra"), .kind = RUNNER_INFRA, .repository = TEXT("pytorch-fdn/infra")}},       \
	    },                                                                                                         \
	    {                                                                                                          \
		.name = TEXT("lab"),                                                                                   \
		.level = LEVEL_2,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners =                                                                                             \
		    (struct runner[]){                                                                                 \
			{.name = TEXT("lab"), .kind = RUNNER_WEBHOOK, .url = TEXT("https://lab.example/hook")}},       \
	    },                                                                                                         \
	    {                                                                                                          \
		.name = TEXT("npu"),                                                                                   \
		.level = LEVEL_3,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners = GITHUB_RUNNER("Ascend/pytorch", NULL),                                                      \
	    },                                                                                                         \
	    {                                                                                                          \
		.name = TEXT("quiet"),                                                                                 \
		.level = LEVEL_1,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners = GITHUB_RUNNER("quiet/quiet", NULL),                                                         \
	    },                                                                                                         \
	    {                                                                                                          \
		.name = TEXT("spyre-a"),                                                                               \
		.level = LEVEL_2,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners = GITHUB_RUNNER("torch-spyre/torch-spyre", NULL),                                             \
	    },                                                                                                         \
	    {                                                                                                          \
		.name = TEXT("spyre-b"),                                                                               \
		.level = LEVEL_1,                                                                                      \
		.n_runners = 1,                                                                                        \
		.runners = GITHUB_RUNNER("torch-spyre/torch-spyre", NULL),                                             \
	    },
