/* A change view laid out as tests × accelerators, with what each accelerator is at and what its
 * failures come from: what the comment, the terminal and the verdict for programs are made of.
 * Private to report/. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/change_view.h"

/* More than MANY do not fit beside each other on a screen. */
enum { TABLE_COLUMNS_MAX = 60, TABLE_COLUMNS_MANY = 8 };

/* What a column is at, told by its current dispatches: the first that applies. */
enum column_state {
	COLUMN_RUNNING, /* sent or waiting to be: results may still come */
	COLUMN_SILENT,  /* failed, or past a deadline: no report */
	COLUMN_HELD,    /* waits for a person */
	COLUMN_FINISHED,
	COLUMN_CANCELLED, /* or superseded */
};

/* How a column counts in the verdict: the first that applies, but OUTCOME_NOT_COUNTED before all
 * of them. */
enum column_outcome {
	OUTCOME_NEW,          /* a failure that was not there on the base */
	OUTCOME_UNCLASSIFIED, /* a failure, and nothing shows what it comes from */
	OUTCOME_MISSING,      /* a test without a result, or all of them: the vendor's to mend */
	OUTCOME_RUNNING,
	OUTCOME_WAITING, /* for a machine */
	OUTCOME_HELD,    /* until a member releases it */
	OUTCOME_MERGED,  /* held for good: it runs what was merged */
	OUTCOME_CANCELLED,
	OUTCOME_LACKING,     /* finished without all that is required of it */
	OUTCOME_UNRELATED,   /* its failures are not caused by the change */
	OUTCOME_PASSED,      /* has a PASS, and nothing else is open */
	OUTCOME_WITHOUT,     /* finished, and nothing passed or failed */
	OUTCOME_NOT_COUNTED, /* unhealthy, whatever it reports */
	N_OUTCOMES
};

/* Why a cell is red, in the order in which people are told. */
enum failure_group {
	FAILURE_NEW,
	FAILURE_UNCLASSIFIED,
	FAILURE_KNOWN,
	FAILURE_BASE,
	FAILURE_FLAKY,
	FAILURE_MISSING,     /* MISS: neither the change nor the test was judged */
	FAILURE_NOT_COUNTED, /* red on an unhealthy accelerator */
	N_FAILURE_GROUPS
};

/* Of a red cell. */
enum failure_group table_failure_group(
    const struct accelerator_view *a, const struct verdict_view *w);
const char *failure_group_name(enum failure_group g); /* in JSON: "new", …, "not_counted" */

/* What the whole says, for a person's first glance and for merge bots. */
enum verdict {
	VERDICT_PASS,    /* every accelerator that counts reported, and no red is the change's */
	VERDICT_FAIL,    /* a new failure; it stays so whatever else comes */
	VERDICT_PENDING, /* more is to come */
	VERDICT_UNKNOWN, /* no more is to come, and it does not suffice */
	N_VERDICTS
};

struct table_column {
	const struct accelerator_view *accelerator;
	enum column_state state;
	enum column_outcome outcome;
	/* the dispatch that state comes from, and the first one that is held (rather one that a
	 * member can release) or silent, whatever the others are at; NULL: none. A held one that is
	 * not current is another round, which waits beside what these cells show. Borrowed */
	const struct dispatch_view *dispatch, *held, *silent;
	size_t n_cells[N_TEST_STATUSES]; /* that have a row, or would have in a whole view */
	size_t n_failures[N_FAILURE_GROUPS];
	size_t n_rerunning; /* of the failures that count or are excused: those that run again */
	size_t n_running_jobs;
	size_t n_lacking; /* required suites and must_pass tests that are not there or neither
			     passed nor failed */
	bool is_waiting;  /* running, and for all of that a machine is waited for */
	bool is_shown;    /* has a column in the table */
};

enum cell_kind {
	CELL_VERDICT, /* `verdict` says */
	CELL_RUNNING,
	CELL_NO_REPORT,     /* the accelerator is silent */
	CELL_NOT_SUPPORTED, /* the registry says so (tests.skip), and nothing was reported */
	CELL_NOT_READ,      /* the view was cut: the page has it */
	CELL_BLANK,         /* that accelerator does not have the test */
};

struct table_cell {
	enum cell_kind kind;
	const struct verdict_view *verdict; /* CELL_VERDICT; borrowed */
	const struct job_view *job;         /* CELL_RUNNING of a job in progress, else NULL */
	const char *word; /* what its red comes from: "new", "known", "base", "flaky"; or NULL */
};

enum row_class { ROW_NEW, ROW_UNCLASSIFIED, ROW_RED, ROW_OTHER, ROW_PASSED, N_ROW_CLASSES };

struct table_entry; /* one known cell */

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
	size_t shown[TABLE_COLUMNS_MAX]; /* those in the table: by name, or where there are many
					    the worst first */
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
	size_t n_unclassified_rerunning; /* those of them that are UNCLASSIFIED */
	size_t n_outcomes[N_OUTCOMES];
	bool has_unread_red;   /* the view was cut and all that was read is red */
	bool has_unread_other; /* it was, and more than passes was not read */
};

/* v has to outlive the table. */
void table_init(struct table *t, const struct change_view *v);
void table_release(struct table *t);
enum verdict table_verdict(const struct table *t);
/* Something has ended, and nobody is at work any more, on first runs or on experiments (what is
 * held waits for a person). */
bool table_is_complete(const struct table *t);
/* Failures that something shows not to be the change's: KNOWN, BASE, FLAKY. */
size_t table_n_unrelated(const struct table *t);
/* The first failure of a group; n_failures_in[group] of them stand there. */
const struct table_failure *table_failures(const struct table *t, enum failure_group group);
/* Rows with a red cell; they stand first. */
size_t table_n_red_rows(const struct table *t);
/* The cells of one row, in the order of the columns: cells[i] for columns[i]; n_columns. */
void table_row_cells(const struct table *t, const struct table_row *row, struct table_cell *cells);
/* Whether a member's ok-to-test lets this column run. */
bool table_is_releasable(const struct table_column *c);
/* Who ended it in a comment ("declined by …", "cancelled by …"), or NULL: nobody did. Borrowed. */
const char *table_declined_why(const struct table_column *c);
/* A column's cell where nothing was reported; also for the row that stands in for all of
 * them while there is none. */
struct table_cell table_empty_cell(const struct table *t, const struct table_column *c);
/* "✓", "✗", "!", "?", "–", "•", "…", "·" or "". Static. */
const char *table_cell_symbol(const struct table_cell *cell);
const char *table_status_symbol(enum test_status s);
/* "suite/test (dtype)", or the test alone where the suite says no more. free(). */
char *table_row_name(const struct table_row *row);

#endif
