/* A change view as a table tests × accelerators, with the state of each accelerator and the causes of its
 * failures. The comment, the check runs, the terminal and the JSON of a change are made from one table. Pure.
 * Thread: any. */
#pragma once

#include "model/change_view.h"

/* More than MANY columns do not fit on a screen. */
enum { TABLE_COLUMNS_MAX = 60, TABLE_COLUMNS_MANY = 8 };

/* The state of a column, from its current dispatches: the first that applies. */
enum column_state {
	COLUMN_RUNNING, /* sent, or waiting to be sent: results may still come */
	COLUMN_SILENT,  /* failed, or past a deadline: no report */
	COLUMN_HELD,    /* waits for a person */
	COLUMN_FINISHED,
	COLUMN_CANCELLED, /* or superseded */
};

/* How a column counts in the verdict: OUTCOME_NOT_COUNTED if it applies, else the first that applies. X(ENUM, name in the JSON) */
#define COLUMN_OUTCOMES(X)                                                                                             \
	X(NEW, "new")                   /* a failure that was not there on the base */                                 \
	X(UNCLASSIFIED, "unclassified") /* a failure of unknown cause */                                               \
	X(MISSING, "missing")           /* one test or all of them have no result, for the vendor to fix */            \
	X(RUNNING, "running")                                                                                          \
	X(WAITING, "waiting")    /* for a machine */                                                                   \
	X(HELD, "held")          /* until a member releases it */                                                      \
	X(MERGED, "merged_only") /* this accelerator tests merged commits only */                                      \
	X(CANCELLED, "cancelled")                                                                                      \
	X(LACKING, "lacking")         /* finished without all required results */                                      \
	X(UNRELATED, "unrelated")     /* its failures are not caused by the change */                                  \
	X(PASSED, "passed")           /* has a PASS, and nothing above applies */                                      \
	X(WITHOUT, "nothing")         /* finished, and nothing passed or failed */                                     \
	X(NOT_COUNTED, "not_counted") /* unhealthy, whatever it reports */
#define OUTCOME_VALUE(e, name) OUTCOME_##e,
enum column_outcome { COLUMN_OUTCOMES(OUTCOME_VALUE) N_OUTCOMES };

/* The cause of a red cell, in the order of the output. X(ENUM, name in the JSON, word in the cell, heading in the terminal) */
#define FAILURE_GROUPS(X)                                                                                              \
	X(NEW, "new", "new", "New failures")                                                                           \
	X(UNCLASSIFIED, "unclassified", NULL, "Not classified")                                                        \
	X(KNOWN, "known", "known", "Known, with an issue")                                                             \
	X(BASE, "base", "base", "Red on the base, too")                                                                \
	X(FLAKY, "flaky", "flaky", "Flaky")                                                                            \
	X(MISSING, "missing", NULL, "No result")                               /* MISS: the test was not judged */     \
	X(NOT_COUNTED, "not_counted", "not counted", "Unhealthy, not counted") /* red on an unhealthy accelerator */
#define FAILURE_VALUE(e, ...) FAILURE_##e,
enum failure_group { FAILURE_GROUPS(FAILURE_VALUE) N_FAILURE_GROUPS };
WORDS_DECLARE(failure_group);

/* Of a red cell. */
enum failure_group table_failure_group(const struct accelerator_view *a, const struct verdict_view *w);

/* The verdict on the whole change, for people and for merge bots. */
enum verdict {
	VERDICT_PASS,    /* every accelerator that counts has reported, and the change caused no failure */
	VERDICT_FAIL,    /* a new failure; later results do not change this */
	VERDICT_PENDING, /* more is to come */
	VERDICT_UNKNOWN, /* everything has finished, but the results are not enough to decide */
	N_VERDICTS
};

enum requirement_state {
	REQUIREMENT_MET,
	REQUIREMENT_RED,          /* the test failed: the failure is reported like any other */
	REQUIREMENT_NOT_PASSED,   /* the test was skipped, or only measured */
	REQUIREMENT_NOT_REPORTED, /* suite or test */
	REQUIREMENT_UNKNOWN,      /* the view was cut before it */
};

/* The suites that an accelerator has to report (`required`) and the tests that have to pass
 * (`tests.must_pass`), each in the registry's order. Empty until the column has finished. */
struct requirements {
	enum requirement_state *suites, *tests; /* as required_suites, must_pass */
	size_t n_suites, n_tests;
};

struct table_column {
	const struct accelerator_view *accelerator;
	enum column_state state;
	enum column_outcome outcome;
	/* the dispatch that `state` comes from; the first held one (preferably one that a member can release) and the
	 * first silent one, whatever the state of the others; NULL: none. A held one that is not current is another
	 * round. Borrowed */
	const struct dispatch_view *dispatch, *held, *silent;
	size_t n_cells[N_TEST_STATUSES]; /* with a row, or counted in a view that was cut */
	size_t n_failures[N_FAILURE_GROUPS];
	size_t n_rerunning,
	    n_reruns_later; /* failures, counted or excused, that run again or wait for a good machine */
	size_t n_running_jobs;
	struct requirements required;
	size_t n_lacking; /* required suites and must_pass tests without a result that passed or failed */
	bool is_waiting;  /* running, but every dispatch still waits for a machine */
	bool is_shown;    /* has a column in the table */
};

enum cell_kind {
	CELL_VERDICT, /* see `verdict` */
	CELL_RUNNING,
	CELL_NO_REPORT,     /* the accelerator is silent */
	CELL_NOT_SUPPORTED, /* by the registry's tests.skip, and nothing was reported */
	CELL_NOT_READ,      /* the view was cut; the page has the result */
	CELL_BLANK,         /* the accelerator does not have the test */
};

struct table_cell {
	enum cell_kind kind;
	const struct verdict_view *verdict; /* CELL_VERDICT; borrowed */
	const struct job_view *job;         /* CELL_RUNNING of a job in progress, else NULL */
	const char *word;                   /* the cause of a red cell: "new", "known", "base", "flaky"; or NULL */
};

enum row_class { ROW_NEW, ROW_UNCLASSIFIED, ROW_RED, ROW_OTHER, ROW_PASSED, N_ROW_CLASSES };

/* One known cell. */
struct table_entry {
	const char *suite, *test, *dtype;
	size_t column;
	const struct verdict_view *verdict; /* or */
	const struct job_view *job;         /* in progress */
};

struct table_row {
	const char *suite, *test, *dtype; /* borrowed; suite and dtype may be "" */
	enum row_class class;
	size_t first, n; /* its entries, by column */
};

struct table_failure {
	size_t column;
	const struct table_row *row;
	const struct verdict_view *verdict;
};

struct table {
	const struct change_view *view;
	struct table_column *columns; /* accelerators above L1, by name */
	size_t n_columns;
	size_t shown[TABLE_COLUMNS_MAX]; /* by name, or if there are many the worst first */
	size_t n_shown;
	struct table_entry *entries; /* by suite, test, dtype, column */
	size_t n_entries;
	struct table_row *rows; /* by class, the worst first; each by name */
	size_t n_rows;
	size_t n_rows_in[N_ROW_CLASSES];
	struct table_failure *failures; /* by group, column, row */
	size_t n_failures;
	size_t n_failures_in[N_FAILURE_GROUPS];
	size_t n_rerunning;              /* of all columns */
	size_t n_unclassified_rerunning; /* how many of them are UNCLASSIFIED */
	size_t n_outcomes[N_OUTCOMES];
	bool has_unread_red;   /* the view was cut, and all that was read is red */
	bool has_unread_other; /* the view was cut, and not only passes were not read */
};

/* Sorts all verdicts of v: build one table for each view. The table borrows from v. */
void table_init(struct table *t, const struct change_view *v);
void table_release(struct table *t);
/* The view was cut, and all that was read is red. A view reads red cells first: if it has others, it has all red ones. */
bool table_has_unread_red(const struct change_view *v);
enum verdict table_verdict(const struct table *t);
/* Something has ended, and no first run or experiment is waiting or running. Held dispatches do not count,
 * because they wait for a person. */
bool table_is_complete(const struct table *t);
/* Failures that the change did not cause: KNOWN, BASE, FLAKY. */
size_t table_n_unrelated(const struct table *t);
/* The first of n_failures_in[group] failures. */
const struct table_failure *table_failures(const struct table *t, enum failure_group group);
/* The number of rows with a red cell; they come first. */
size_t table_n_red_rows(const struct table *t);
/* The cells of one row, in the order of the columns: cells[i] for columns[i]; n_columns. */
void table_row_cells(const struct table *t, const struct table_row *row, struct table_cell *cells);
/* Whether a member's ok-to-test lets this column run. */
bool table_is_releasable(const struct table_column *c);
/* "declined by …" or "cancelled by …" if a person ended it in a comment, else NULL. Borrowed. */
const char *table_declined_why(const struct table_column *c);
/* A column's cell for a test that it did not report; also for the row "every test" of a table without rows. */
struct table_cell table_empty_cell(const struct table *t, const struct table_column *c);
/* "✓", "✗", "!", "?", "–", "•", "…", "·" or "". Static. */
const char *table_cell_symbol(const struct table_cell *cell);
const char *table_status_symbol(enum test_status s);
/* "suite/test (dtype)", without the suite if it is empty or equals the test. free(). */
char *table_row_name(const struct table_row *row);

/* Private to table_init(), in table_rows.c: adds entries, rows and failures, and counts them in the columns. column_of:
 * by the view's index of an accelerator; SIZE_MAX: it has no column. */
void table_add_rows(struct table *t, const size_t *column_of);
