#include "model/packed_tests.h"

#include "model/attribution.h"

/* A checksum. Statuses: the number of bytes of the runs, then each run as length × N_TEST_STATUSES + status. They are not compressed, so
 * that a look at one test reads a few bytes. Durations: a zstd frame of numbers, each one more than the milliseconds; 0:
 * unknown. No frame: all are unknown. */

enum { CHECKSUM_BYTES = 4, VARINT_MAX_BYTES = 8, DURATION_MAX_MS = INT32_MAX, NAMES_BYTES = 32 << 10 };

/* Each text ends with its NUL, so that no two lists have the same bytes. */
static void add_name(struct buf *names, const char *s) { buf_append(names, s ? s : "", s ? strlen(s) + 1 : 1); }

void test_list_digest(const struct test_result *tests, size_t n, uint8_t ret[SHA256_BYTES])
{
	static const char key[] = "test list";
	struct hmac *h = hmac_new(key, sizeof(key));
	struct buf names = BUF_INIT(2 * NAMES_BYTES);

	for (const struct test_result *t = tests; t < tests + n; t++) {
		add_name(&names, t->suite);
		add_name(&names, t->name);
		add_name(&names, t->dtype);
		if (names.len >= NAMES_BYTES || t + 1 == tests + n) {
			hmac_update(h, names.data, names.len);
			buf_clear(&names);
		}
	}
	hmac_final(h, ret);
	hmac_free(h);
	buf_release(&names);
}

/* ---- lists ---- */

/* Small numbers for small distances in both directions: 0, -1, 1, -2, … are 0, 1, 2, 3, … */
static uint64_t zigzag(int64_t v) { return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63); }

static const int64_t ID_MAX = INT64_C(1) << 55;

static int64_t unzigzag(int64_t v) { return (int64_t)((uint64_t)v >> 1) ^ -(v & 1); }

void test_list_put(struct buf *out, const int64_t *ids, size_t n)
{
	int64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		varint_put(out, zigzag(ids[i] - last));
		last = ids[i];
	}
}

bool test_list_get(const void *p, size_t bytes, int64_t *ids, size_t n)
{
	const uint8_t *at = p, *end = at + bytes;
	int64_t last = 0, v;

	for (size_t i = 0; i < n; i++) {
		if (!varint_get(&at, end, &v))
			return false;
		last += unzigzag(v); /* both have fewer than 57 bits */
		if (last <= 0 || last > ID_MAX)
			return false;
		ids[i] = last;
	}
	return at == end;
}

/* ---- statuses and durations ---- */

static void put_runs(struct buf *out, const struct test_result *tests, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && tests[end].status == tests[i].status; end++)
			;
		varint_put(out, (uint64_t)(end - i) * N_TEST_STATUSES + tests[i].status);
	}
}

/* FNV-1a of the place and the bytes. */
static uint32_t checksum(const struct packed_place *place, const void *p, size_t n)
{
	const int64_t numbers[] = {place->job_id, place->first, place->list_id};
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < 8 * ARRAY_LEN(numbers); i++)
		h = (h ^ (uint8_t)((uint64_t)numbers[i / 8] >> 8 * (i % 8))) * 16777619u;
	for (const uint8_t *at = p, *end = at + n; at < end; at++)
		h = (h ^ *at) * 16777619u;
	return h;
}

static void put_checksum(const struct packed_place *place, struct buf *cells)
{
	uint32_t sum = checksum(place, cells->data + CHECKSUM_BYTES, cells->len - CHECKSUM_BYTES);

	memcpy(cells->data, &sum, CHECKSUM_BYTES);
}

void packed_cells_put(
    struct compressor *c, const struct packed_place *place, const struct test_result *tests, size_t n, struct buf *out)
{
	struct buf runs = BUF_INIT(n * VARINT_MAX_BYTES + 1), times = BUF_INIT(n * VARINT_MAX_BYTES + 1);
	struct buf frame = BUF_INIT(2 * n * VARINT_MAX_BYTES + 1024);
	bool has_any = false;

	put_runs(&runs, tests, n);
	for (const struct test_result *t = tests; t < tests + n; t++) {
		int64_t ms = t->duration_ms > DURATION_MAX_MS ? DURATION_MAX_MS : t->duration_ms;

		has_any |= ms >= 0;
		varint_put(&times, ms < 0 ? 0 : (uint64_t)ms + 1);
	}
	buf_clear(out);
	buf_append(out, "\0\0\0\0", CHECKSUM_BYTES);
	varint_put(out, runs.len);
	buf_append(out, runs.data, runs.len);
	if (has_any && compress(c, times.data, times.len, &frame) == 0)
		buf_append(out, frame.data, frame.len);
	put_checksum(place, out);
	buf_release(&runs);
	buf_release(&times);
	buf_release(&frame);
}

static bool get_durations(const void *p, size_t bytes, int64_t *durations, size_t n)
{
	struct buf times = BUF_INIT(n * VARINT_MAX_BYTES + 1);
	const uint8_t *at, *end;
	size_t i = 0;

	if (bytes == 0) {
		for (; i < n; i++)
			durations[i] = -1;
		return true;
	}
	if (decompress_like(NULL, 0, p, bytes, &times) == 0) {
		at = (const uint8_t *)times.data;
		end = at + times.len;
		while (i < n && varint_get(&at, end, &durations[i]))
			durations[i++]--;
		i += at != end;
	}
	buf_release(&times);
	return i == n;
}

bool packed_cells_get(
    const void *p, size_t bytes, const struct packed_place *place, uint8_t *statuses, int64_t *durations, size_t n)
{
	uint32_t sum;
	const uint8_t *at = p, *end = at + bytes, *runs_end;
	int64_t n_runs, run;
	size_t i = 0;

	if (bytes < CHECKSUM_BYTES)
		return false;
	memcpy(&sum, p, CHECKSUM_BYTES);
	at += CHECKSUM_BYTES;
	if (sum != checksum(place, at, bytes - CHECKSUM_BYTES))
		return false;
	if (!varint_get(&at, end, &n_runs) || n_runs > end - at)
		return false;
	for (runs_end = at + n_runs; at < runs_end; i += (size_t)run / N_TEST_STATUSES) {
		if (!varint_get(&at, runs_end, &run) || (size_t)run / N_TEST_STATUSES > n - i)
			return false;
		memset(statuses + i, (int)(run % N_TEST_STATUSES), (size_t)run / N_TEST_STATUSES);
	}
	return i == n && (!durations || get_durations(runs_end, (size_t)(end - runs_end), durations, n));
}

bool test_result_needs_row(const struct test_result *t)
{
	return test_status_is_red(t->status) || t->has_number || t->message || t->trace || t->log_url || t->file ||
	       t->line || t->unit;
}

/* ---- a whole report ---- */

void packed_tests_make(struct packed_tests *ret, const struct test_result *tests, size_t n)
{
	struct compressor *c;

	*ret = (struct packed_tests){.tests = tests, .n = n, .cells = BUF_INIT(SIZE_MAX / 2)};
	if (n == 0)
		return;
	test_list_digest(tests, n, ret->digest);
	c = compressor_new(1);
	packed_cells_put(c, &(struct packed_place){0, 0, 0}, tests, n, &ret->cells);
	compressor_free(c);
	for (size_t i = 0; i < n; i++) {
		ret->by_status[tests[i].status]++;
		ret->has_numbers |= tests[i].has_number;
		if (test_result_needs_row(&tests[i]))
			*ARRAY_PUSH(ret->rows, ret->n_rows) = (uint32_t)i;
	}
	ret->marks = xcalloc(ret->n_rows + 1, sizeof(*ret->marks));
	for (size_t i = 0; i < ret->n_rows; i++) {
		const struct test_result *t = &tests[ret->rows[i]];

		if (attribution_applies(t->status))
			ret->marks[i] = failure_mark(
			    t->status, &(struct failure_text){t->message, t->trace, t->suite, t->name, t->dtype});
	}
}

void packed_tests_release(struct packed_tests *p)
{
	buf_release(&p->cells);
	free(p->rows);
	free(p->marks);
	free(p->ids);
	*p = (struct packed_tests){.n = 0};
}

void packed_tests_place(struct packed_tests *p, const struct packed_place *place) { put_checksum(place, &p->cells); }

int64_t packed_tests_n_red(const struct packed_tests *p)
{
	return p->by_status[TEST_FAIL] + p->by_status[TEST_ERROR] + p->by_status[TEST_MISS];
}

enum test_status packed_tests_worst(const struct packed_tests *p, enum test_status worst)
{
	for (int s = 0; s < (int)worst; s++)
		if (p->by_status[s])
			return (enum test_status)s;
	return worst;
}
