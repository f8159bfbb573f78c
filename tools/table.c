#include "tools/table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <string.h>
#include <wchar.h>

#include "fs/bytes.h"
#include "store/util.h"

#define BLOCK_ROWS 500

int table_init(struct table *t, const struct table_column *columns, size_t count)
{
	*t = (struct table){ .columns = columns, .count = count };
	t->table = scols_new_table();
	if (!t->table)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!scols_table_new_column(t->table, columns[i].name, 0,
					    columns[i].right ? SCOLS_FL_RIGHT : 0)) {
			scols_unref_table(t->table);
			t->table = NULL;
			return -ENOMEM;
		}
		t->widths[i] = strlen(columns[i].name);
	}
	/* A long path in a narrow terminal goes on in the next line rather than being cut. */
	scols_table_set_termforce(t->table, SCOLS_TERMFORCE_NEVER);
	return 0;
}

/* Columns that the text takes on a terminal, where Chinese characters take two and accents none. */
static size_t width(const char *text)
{
	size_t size = strlen(text), columns = 0;
	uint32_t c;

	while (size) {
		size_t length = bytes_character(text, size, &c);
		int wide = length ? wcwidth((wchar_t)c) : 1;

		length = length ? length : 1;
		text += length;
		size -= length;
		columns += wide > 0 ? (size_t)wide : 0;
	}
	return columns;
}

static void print_block(struct table *t)
{
	for (size_t i = 0; i + 1 < t->count; i++)
		scols_column_set_whint(scols_table_get_column(t->table, i), (double)t->widths[i]);
	scols_table_enable_noheadings(t->table, t->started);
	scols_print_table(t->table);
	scols_table_remove_lines(t->table);
	t->started = true;
	t->rows = 0;
}

void table_row(struct table *t, const char *const *texts)
{
	struct libscols_line *line = scols_table_new_line(t->table, NULL);

	if (!line)
		return;
	for (size_t i = 0; i < t->count; i++) {
		scols_line_set_data(line, i, texts[i]);
		t->widths[i] = util_max(t->widths[i], width(texts[i]));
	}
	if (++t->rows == BLOCK_ROWS)
		print_block(t);
}

void table_finish(struct table *t)
{
	if (!t->table)
		return;
	if (t->rows)
		print_block(t);
	scols_unref_table(t->table);
	t->table = NULL;
}
