#include <setjmp.h>

#include <cmocka.h>

#include "runners/access.h"
#include "runners_registry.h"

#define REF(file) "bound/bound/.github/workflows/" file "@refs/heads/main"

static const struct {
	const char *repository, *workflow_ref;
	const char *allowed, *silent, *refused; /* joined by spaces */
} table[] = {
    {"Ascend/pytorch", NULL, "npu", "", ""},
    {"ascend/PyTorch", "x/y/.github/workflows/z.yml@main", "npu", "", ""},
    {"Ascend/pytorch2", NULL, "", "", ""},
    {"Ascend", NULL, "", "", ""},
    {"lab", NULL, "", "", ""},
    {"pytorch-fdn/infra", NULL, "hosted", "", ""},
    {"quiet/quiet", NULL, "quiet", "quiet", ""},
    {"torch-spyre/torch-spyre", NULL, "spyre-a spyre-b", "spyre-b", ""},
    {"bound/bound", NULL, "", "", "bound-a bound-b"},
    {"bound/bound", REF("a.yml"), "bound-a", "", "bound-b"},
    {"Bound/bound", "BOUND/bound/.github/workflows/b.yml@refs/tags/v1", "bound-b", "", "bound-a"},
    {"bound/bound", REF("A.yml"), "", "", "bound-a bound-b"},
    {"bound/bound", REF("a.yml.bak"), "", "", "bound-a bound-b"},
    {"bound/bound", REF("a.yml@evil.yml"), "", "", "bound-a bound-b"},
    {"bound/bound", "bound/bound/.github/workflows/a.yml@", "", "", "bound-a bound-b"},
    {"bound/bound", "bound/bound/.github/workflows/a.yml@0123456789012345678901234567890123456789", "bound-a", "",
	"bound-b"},
    {"bound/bound", REF("c.yml"), "", "", "bound-a bound-b"},
    {"bound/bound", "evil/fork/.github/workflows/a.yml@refs/heads/main", "", "", "bound-a bound-b"},
    {"bound/bound", "bound/bound/x/.github/workflows/a.yml@r", "", "", "bound-a bound-b"},
    {"bound/bound", "bound/bound/.github/workflows/a.yml", "", "", "bound-a bound-b"},
    {"bound/bound", "bound/bound", "", "", "bound-a bound-b"},
    {"bound/bound", "", "", "", "bound-a bound-b"},
};

static void assert_names(const char *const *names, size_t n, const char *expected)
{
	struct buf joined = BUF_INIT(4096);

	for (size_t i = 0; i < n; i++)
		buf_appendf(&joined, "%s%s", i ? " " : "", names[i]);
	assert_null(names[n]);
	assert_string_equal(buf_str(&joined), expected);
	buf_release(&joined);
}

static void test_table(void **state)
{
	struct accelerator accelerators[] = {REGISTRY_ACCELERATORS};
	const struct config c = {
	    .accelerators = accelerators,
	    .n_accelerators = ARRAY_LEN(accelerators),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct access a;

		access_of_repository(&c, table[i].repository, table[i].workflow_ref, &a);
		assert_names(a.allowed, a.n_allowed, table[i].allowed);
		assert_names(a.silent, a.n_silent, table[i].silent);
		assert_names(a.refused, a.n_refused, table[i].refused);
		assert_int_equal(access_is_registered(&a), a.repository != NULL);
		assert_int_equal(access_is_silent(&a), str_eq(table[i].allowed, "quiet"));
		access_release(&a);
	}
}

static void test_checks_by_accelerator(void **state)
{
	struct accelerator accelerators[] = {REGISTRY_ACCELERATORS};
	const struct config c = {
	    .accelerators = accelerators,
	    .n_accelerators = ARRAY_LEN(accelerators),
	};
	struct access a;

	(void)state;
	access_of_accelerator(&c, "bound-a", &a);
	assert_names(a.allowed, a.n_allowed, "bound-a");
	assert_false(strv_contains(a.refused, "bound-b"));
	access_release(&a);
	access_of_accelerator(&c, "quiet", &a);
	assert_true(access_is_silent(&a));
	access_release(&a);
	access_of_accelerator(&c, "gone", &a);
	assert_false(access_is_registered(&a));
	access_release(&a);
}

/* Finding 15: a pin in one file applies to the repository. */
static void test_collects_pins(void **state)
{
	struct runner pinned[] = {{.kind = RUNNER_GITHUB, .repository = TEXT("o/r"), .repository_id = 74}};
	struct runner other[] = {{.kind = RUNNER_PULL},
	    {.kind = RUNNER_INFRA, .repository = TEXT("O/R"), .repository_owner_id = 65},
	    {.kind = RUNNER_GITHUB, .repository = TEXT("o/r2"), .repository_id = 99}};
	struct accelerator accelerators[] = {
	    {.name = TEXT("a"), .level = LEVEL_2, .runners = pinned, .n_runners = 1},
	    {.name = TEXT("b"), .level = LEVEL_2, .runners = other, .n_runners = 3},
	};
	const struct config c = {.accelerators = accelerators, .n_accelerators = 2};
	struct access a;

	(void)state;
	access_of_repository(&c, "o/R", NULL, &a);
	assert_int_equal(a.pinned.repository_id, 74);
	assert_int_equal(a.pinned.owner_id, 65);
	access_release(&a);
	access_of_repository(&c, "o/r2", NULL, &a);
	assert_int_equal(a.pinned.repository_id, 99);
	assert_int_equal(a.pinned.owner_id, 0);
	access_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_checks_by_accelerator),
	    cmocka_unit_test(test_collects_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
