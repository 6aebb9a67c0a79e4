/* Unpacking: any bytes are refused or give statuses and ids that exist, and what was packed comes back. */
#include "model/packed_tests.c" /* its checksum() */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TESTS_MAX = 64 };
static const struct packed_place PLACE = {7, 2, 5};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void unpack_bytes(const uint8_t *data, size_t size)
{
	size_t n = size ? data[0] % TESTS_MAX + 1 : 1;
	uint8_t statuses[TESTS_MAX];
	int64_t numbers[TESTS_MAX];
	struct buf out = BUF_INIT(1 << 20), cells = BUF_INIT(1 << 20);
	uint32_t sum;

	(void)!packed_cells_get(data, size, &PLACE, statuses, numbers, n);
	/* the same bytes with a checksum that fits */
	sum = checksum(&PLACE, data, size);
	buf_append(&cells, (const char *)&sum, sizeof(sum));
	buf_append(&cells, (const char *)data, size);
	if (packed_cells_get(cells.data, cells.len, &PLACE, statuses, numbers, n))
		for (size_t i = 0; i < n; i++)
			check(statuses[i] < N_TEST_STATUSES);
	buf_release(&cells);
	if (test_list_get(data, size, numbers, n))
		for (size_t i = 0; i < n; i++)
			check(numbers[i] > 0);
	(void)!decompress_like(data, size / 2, data + size / 2, size - size / 2, &out);
	buf_release(&out);
}

static void pack_and_unpack(const uint8_t *data, size_t size)
{
	struct compressor *c = compressor_new(1);
	struct test_result tests[TESTS_MAX];
	struct buf cells = BUF_INIT(1 << 20), list = BUF_INIT(1 << 20), packed = BUF_INIT(1 << 20),
		   back = BUF_INIT(1 << 20);
	size_t n = size < TESTS_MAX ? size : TESTS_MAX;
	uint8_t statuses[TESTS_MAX];
	int64_t ids[TESTS_MAX], numbers[TESTS_MAX];

	for (size_t i = 0; i < n; i++) {
		tests[i] = (struct test_result){.status = (enum test_status)(data[i] % N_TEST_STATUSES),
		    .duration_ms = (int64_t)data[n - 1 - i] * data[i] - 1};
		ids[i] = 1 + (int64_t)data[i] * 1000 * data[n - 1 - i];
	}
	packed_cells_put(c, &PLACE, tests, n, &cells);
	check(packed_cells_get(cells.data, cells.len, &PLACE, statuses, numbers, n));
	for (size_t i = 0; i < n; i++)
		check(statuses[i] == tests[i].status && numbers[i] == tests[i].duration_ms);
	for (int i = 0; i < 3; i++) {
		struct packed_place other = {PLACE.job_id + (i == 0), PLACE.first + (i == 1), PLACE.list_id + (i == 2)};

		check(!packed_cells_get(cells.data, cells.len, &other, statuses, numbers, n));
	}
	test_list_put(&list, ids, n);
	check(test_list_get(list.data, list.len, numbers, n));
	for (size_t i = 0; i < n; i++)
		check(numbers[i] == ids[i]);
	/* as the difference to other bytes */
	check(compress_like(c, data, size, list.data, list.len, &packed) == 0);
	check(decompress_like(data, size, packed.data, packed.len, &back) == 0);
	check(back.len == list.len && memcmp(back.data, list.data, list.len) == 0);
	buf_release(&cells);
	buf_release(&list);
	buf_release(&packed);
	buf_release(&back);
	compressor_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unpack_bytes(data, size);
	if (size)
		pack_and_unpack(data, size);
	return 0;
}
