#include <setjmp.h>

#include <cmocka.h>

/* Sizes around the block sizes; every piece keeps its content while the arena grows. */
static void allocations_are_aligned_zeroed_and_separate(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 16, 1000, 1024, 1025, 40, 65536, 70000, 3, 200000, 5};
	unsigned char *at[ARRAY_LEN(sizes) * 20];
	struct arena a = {0};
	size_t n = 0;

	(void)state;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++, n++) {
			at[n] = arena_alloc(&a, sizes[i]);
			assert_int_equal((uintptr_t)at[n] % _Alignof(max_align_t), 0);
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(at[n][k], 0);
			memset(at[n], (int)(n % 251) + 1, sizes[i]);
		}
	}
	for (size_t j = 0; j < n; j++)
		for (size_t k = 0; k < sizes[j % ARRAY_LEN(sizes)]; k++)
			assert_int_equal(at[j][k], j % 251 + 1);
	arena_release(&a);
}

static void copies_do_not_depend_on_their_source(void **state)
{
	struct arena a = {0};
	char text[] = "nightly";
	int64_t numbers[] = {3, -1, 7};
	char *copy = arena_strdup(&a, text);
	int64_t *list = arena_memdup(&a, numbers, sizeof(numbers));

	(void)state;
	text[0] = 'X';
	numbers[2] = 0;
	assert_string_equal(copy, "nightly");
	assert_int_equal(list[2], 7);
	assert_string_equal(arena_strdup(&a, ""), "");
	assert_null(arena_strdup(&a, NULL));
	assert_non_null(arena_memdup(&a, NULL, 0));
	arena_release(&a);
}

static void an_arena_can_be_used_again_after_release(void **state)
{
	struct arena a = {0};
	int64_t *list;

	(void)state;
	arena_release(&a);
	for (int round = 0; round < 3; round++) {
		list = arena_array(&a, 500, sizeof(*list));
		for (int i = 0; i < 500; i++)
			assert_int_equal(list[i], 0);
		list[499] = round + 1;
		arena_release(&a);
		assert_null(a.blocks);
	}
}

static void an_array_grows_by_one_and_keeps_its_elements(void **state)
{
	int64_t *list = NULL;
	size_t n = 0;

	(void)state;
	for (int64_t i = 0; i < 1000; i++)
		*ARRAY_PUSH(list, n) = i * i;
	assert_int_equal(n, 1000);
	for (int64_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i * i);
	free(list);
}

/* AddressSanitizer reports it if the room is smaller than the macro assumes. */
static void a_shortened_array_grows_again(void **state)
{
	int *list = NULL;
	int n = 0;

	(void)state;
	for (int length = 1; length <= 40; length++) {
		for (int cut = 0; cut <= length; cut++) {
			while (n < length) {
				int *at = ARRAY_PUSH(list, n);

				*at = n;
			}
			n = cut;
		}
	}
	while (n < 64) {
		int *at = ARRAY_PUSH(list, n);

		*at = n;
	}
	for (int i = 0; i < 64; i++)
		assert_int_equal(list[i], i + 1);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(allocations_are_aligned_zeroed_and_separate),
	    cmocka_unit_test(copies_do_not_depend_on_their_source),
	    cmocka_unit_test(an_arena_can_be_used_again_after_release),
	    cmocka_unit_test(an_array_grows_by_one_and_keeps_its_elements),
	    cmocka_unit_test(a_shortened_array_grows_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
