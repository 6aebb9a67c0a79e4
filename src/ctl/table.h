/* An aligned table for people: columns as wide as their content, a dim heading and coloured states
 * where there is a terminal. On one that is too narrow the last column, where sentences stand, goes
 * below its row, and the widest columns are cut. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "ctl/command.h"

struct table;

/* headings: NULL-terminated; borrowed until table_print(). */
struct table *table_new(const char *const *headings);
/* One cell after the other, row by row; copied, control characters dropped. NULL is "". */
void table_add(struct table *t, const char *text);
/* "3 min ago", from RFC 3339; "" for NULL. */
void table_add_age(struct table *t, const char *rfc3339, int64_t now_ms);
void table_add_int(struct table *t, int64_t n);
/* Prints on stdout and frees. `nothing` is said when there is no row. */
void table_print(struct table *t, const struct ctl *ctl, const char *nothing);

/* "3 min ago" into out. */
const char *age_text(int64_t then_ms, int64_t now_ms, char *out, size_t n);

#endif
