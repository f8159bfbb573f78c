/*
 * table.h - tables on standard output, by libsmartcols.
 *
 * Rows are printed in blocks, so that a listing of a million starts at once and
 * takes no memory; the widths of a block hold for the later ones.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS_MAX 10

struct table_column {
	const char *name;
	bool right; /* numbers */
};

struct libscols_table;

struct table {
	struct libscols_table *table;
	const struct table_column *columns;
	size_t count;
	size_t rows; /* in the block */
	size_t widths[TABLE_COLUMNS_MAX];
	bool started; /* the heading is out */
};

/* `columns` is kept. 0 or -ENOMEM. */
int table_init(struct table *t, const struct table_column *columns, size_t count);
/* One text for each column; copied. */
void table_row(struct table *t, const char *const *texts);
/* Prints what is left. Takes zeroed. */
void table_finish(struct table *t);

#endif
