/* Rows read into records, single columns, and the table of settings. */
#include "db/db.h"
#include "db/record_rows.h"
#include "db/settings.h"
#include "model/states.h"
#include "store_rig.h"

static struct db *db;
static struct txn *txn;

static int setup(void **state)
{
	struct error e = {0};
	char *path;

	rig_setup(state);
	rig_close(); /* the tables are there */
	path = rig_path();
	assert_int_equal(db_open(path, DB_WRITER, &db, &e), 0);
	free(path);
	return 0;
}

static int teardown(void **state)
{
	db_close(db);
	return rig_teardown(state);
}

#define SAMPLE_RECORD(F, S)                                                                                            \
	F(S, KEY, id, NULL, "'0123456789abcdef'", "")                                                                  \
	F(S, GUID, packed_guid, NULL, "x'00112233445566778899aabbccddeeff'", "")                                       \
	F(S, GUID, guid, NULL, "'not a UUID'", "")                                                                     \
	F(S, DIGEST, digest, NULL, "x'0101010101010101010101010101010101010101010101010101010101010101'", "")          \
	F(S, DIGEST, short_digest, NULL, "x'ff'", "")                                                                  \
	F(S, BORROWED, text, NULL, "'text'", "")                                                                       \
	F(S, BORROWED, none, NULL, "NULL", "")                                                                         \
	F(S, BLOB, blob, NULL, "x'0102'", "")                                                                          \
	F(S, JOB_STATUS, status, NULL, "'completed'", "")                                                              \
	F(S, JOB_STATUS, other_status, NULL, "'gone'", "")
RECORD_LOCAL(sample, SAMPLE_RECORD)

static void each_type_is_read(void **state)
{
	struct rows *r = db_rows(db, RECORD_SELECT(SAMPLE_RECORD));
	struct sample s, copy;

	(void)state;
	assert_true(rows_next(r));
	record_read(r, &sample_record, &s);
	assert_string_equal(s.id, "0123456789abcdef");
	assert_string_equal(s.packed_guid, "00112233-4455-6677-8899-aabbccddeeff");
	assert_string_equal(s.guid, "not a UUID");
	for (size_t i = 0; i < sizeof(s.digest); i++) {
		assert_int_equal(s.digest[i], 1);
		assert_int_equal(s.short_digest[i], 0);
	}
	assert_string_equal(s.text, "text");
	assert_string_equal(s.none, "");
	assert_int_equal(s.blob.n, 2);
	assert_memory_equal(s.blob.p, "\1\2", 2);
	assert_int_equal(s.status, JOB_COMPLETED);
	assert_int_equal(s.other_status, N_JOB_STATUSES);
	rows_end(r);

	copy = s;
	record_copy_texts(&sample_record, &copy);
	assert_ptr_not_equal(copy.guid, s.guid);
	assert_string_equal(copy.guid, s.guid);
	record_release(&sample_record, &copy);
	record_release(&sample_record, &s);
	assert_null(s.guid);
}

#define NUMBER_RECORD(F, S) F(S, COUNT, n, NULL, "n", "NULL: -1.")
RECORD_LOCAL(number, NUMBER_RECORD)
#define NUMBERS "FROM (SELECT 7 AS n UNION ALL SELECT NULL UNION ALL SELECT 5) numbers"

static void a_list_has_each_row(void **state)
{
	struct number *list = NULL;
	size_t n = 0;

	(void)state;
	RECORDS_READ(db_rows(db, RECORD_QUERY(NUMBER_RECORD, NUMBERS)), number, list, n);
	assert_int_equal(n, 3);
	assert_int_equal(list[0].n, 7);
	assert_int_equal(list[1].n, -1);
	assert_int_equal(list[2].n, 5);
	RECORDS_RELEASE(number, list, n);
	assert_null(list);
	assert_int_equal(n, 0);
}

static void a_statement_without_rows_changes_nothing(void **state)
{
	struct number one = {.n = 3};
	size_t n = 9;
	int64_t *list;

	(void)state;
	assert_false(
	    record_read_first(db_rows(db, RECORD_QUERY(NUMBER_RECORD, NUMBERS " WHERE n = 1")), &number_record, &one));
	assert_int_equal(one.n, 3);
	assert_true(
	    record_read_first(db_rows(db, RECORD_QUERY(NUMBER_RECORD, NUMBERS " WHERE n = 5")), &number_record, &one));
	assert_int_equal(one.n, 5);
	list = rows_key_numbers(db_rows(db, "SELECT n " NUMBERS " WHERE n = 1"), &n);
	assert_int_equal(n, 0);
	free(list);
}

static void single_columns_are_read(void **state)
{
	size_t n;
	int64_t *list = rows_key_numbers(db_rows(db, "SELECT n " NUMBERS " WHERE n IS NOT NULL ORDER BY n"), &n);

	(void)state;
	assert_int_equal(n, 2);
	assert_int_equal(list[0], 5);
	assert_int_equal(list[1], 7);
	free(list);
	assert_int_equal(rows_first_word(db_rows(db, "SELECT 'completed'"), &job_status_words), JOB_COMPLETED);
	assert_int_equal(rows_first_word(db_rows(db, "SELECT 'gone'"), &job_status_words), N_JOB_STATUSES);
	assert_int_equal(
	    rows_first_word(db_rows(db, "SELECT 'completed' WHERE 1 = 0"), &job_status_words), N_JOB_STATUSES);
}

static void settings_are_written_and_deleted(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(db_begin(db, DB_WRITER), 0);
	txn = db_txn(db);
	assert_null(setting_text(db_view(db), "test.key"));
	assert_int_equal(setting_int(db_view(db), "test.key", 42), 42);
	setting_put_int(txn, "test.key", -7);
	assert_int_equal(setting_int(db_view(db), "test.key", 42), -7);
	setting_put_text(txn, "test.key", "text");
	text = setting_text(db_view(db), "test.key");
	assert_string_equal(text, "text");
	free(text);
	setting_put_text(txn, "test.key", NULL);
	assert_null(setting_text(db_view(db), "test.key"));
	assert_int_equal(db_commit(db), 0);
}

static void fill_table(struct txn *d) { setting_put_int(d, "test.n", setting_int(d->view, "test.n", 0) + 1); }

static void fail_to_fill(struct txn *d)
{
	setting_put_int(d, "test.half", 1);
	db_fail(d, ERR_FULL, "the disk is full");
}

static void a_transaction_is_atomic(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(db_transaction(db, fail_to_fill, &e), ERR_FULL);
	assert_string_equal(e.text, "the disk is full");
	assert_int_equal(setting_int(db_view(db), "test.half", 0), 0);
	assert_int_equal(db_transaction(db, fill_table, &e), 0);
	assert_int_equal(db_transaction(db, fill_table, &e), 0);
	assert_int_equal(setting_int(db_view(db), "test.n", 0), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(each_type_is_read),
	    TEST(a_list_has_each_row),
	    TEST(a_statement_without_rows_changes_nothing),
	    TEST(single_columns_are_read),
	    TEST(settings_are_written_and_deleted),
	    TEST(a_transaction_is_atomic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
