/* A change view laid out as tests × accelerators, with what each accelerator is at: what the
 * comment and the terminal draw. Private to report/. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/change_view.h"

enum { TABLE_COLUMNS_MAX = 60 };

/* What a column is at, told by its current dispatches: the first that applies. */
enum column_state {
	COLUMN_RUNNING, /* sent or waiting to be: results may still come */
	COLUMN_SILENT,  /* failed, or past a deadline: no report */
	COLUMN_HELD,    /* waits for a person */
	COLUMN_FINISHED,
	COLUMN_CANCELLED, /* or superseded */
};

/* How a column counts in the verdict line: the first that applies. */
enum column_outcome {
	OUTCOME_RED,     /* FAIL or ERROR */
	OUTCOME_MISSING, /* MISS, or silent */
	OUTCOME_RUNNING,
	OUTCOME_HELD,
	OUTCOME_PASSED,    /* has a PASS, and nothing else is open */
	OUTCOME_CANCELLED, /* whatever had passed by then */
	OUTCOME_WITHOUT,   /* finished, and nothing passed or failed */
	N_OUTCOMES
};

struct table_column {
	const struct accelerator_view *accelerator;
	enum column_state state;
	enum column_outcome outcome;
	/* the dispatch that state comes from, and the first one that is held (rather one that a
	 * member can release) or silent, whatever the others are at; NULL: none. Borrowed */
	const struct dispatch_view *dispatch, *held, *silent;
	size_t n_cells[N_TEST_STATUSES]; /* that have a row, or would have in a whole view */
	size_t n_running_jobs;
	bool is_shown; /* has a column in the table */
};

enum cell_kind {
	CELL_VERDICT, /* `verdict` says */
	CELL_RUNNING,
	CELL_NO_REPORT, /* the accelerator is silent */
	CELL_NOT_READ,  /* the view was cut: the page has it */
	CELL_BLANK,     /* that accelerator does not have the test */
};

struct table_cell {
	enum cell_kind kind;
	const struct verdict_view *verdict; /* CELL_VERDICT; borrowed */
	const struct job_view *job;         /* CELL_RUNNING of a job in progress, else NULL */
};

enum row_class { ROW_RED, ROW_OTHER, ROW_PASSED, N_ROW_CLASSES };

struct table_entry; /* one known cell */

struct table_row {
	const char *suite, *test; /* borrowed; suite may be "" */
	enum row_class class;
	size_t first, n; /* its entries, by column */
};

struct table {
	const struct change_view *view;
	struct table_column *columns; /* accelerators above L1, by name */
	size_t n_columns;
	size_t n_shown;              /* of these, in the table */
	struct table_entry *entries; /* by suite, test, column */
	size_t n_entries;
	struct table_row *rows; /* red ones, then others, then those that passed; each by name */
	size_t n_rows;
	size_t n_rows_in[N_ROW_CLASSES];
	size_t n_rows_failed; /* with a FAIL or ERROR */
	size_t n_outcomes[N_OUTCOMES];
	bool has_unread_red; /* the view was cut and all that was read is red */
};

/* v has to outlive the table. */
void table_init(struct table *t, const struct change_view *v);
void table_release(struct table *t);
/* The cells of one row, in the order of the columns: cells[i] for columns[i]; n_columns. */
void table_row_cells(const struct table *t, const struct table_row *row, struct table_cell *cells);
/* Whether a member's ok-to-test lets this column run. */
bool table_is_releasable(const struct table_column *c);
/* Why a member's ok-to-test cancel ended it ("declined by …"), or NULL: nobody did. Borrowed. */
const char *table_declined_why(const struct table_column *c);
/* A column's cell where nothing was reported; also for the row that stands in for all of
 * them while there is none. */
struct table_cell table_empty_cell(const struct table *t, const struct table_column *c);
/* "✓", "✗", "!", "?", "–", "•", "…", "·" or "". Static. */
const char *table_cell_symbol(const struct table_cell *cell);
/* "suite/test", or the test alone. free(). */
char *table_test_name(const char *suite, const char *test);

#endif
