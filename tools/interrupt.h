/*
 * interrupt.h - SIGINT, SIGTERM and SIGHUP as something to look at between two
 * steps, so that a command can stop where its state can be said.
 */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

/* Blocks the signals. A descriptor that is readable once one came, or a negative errno. */
int interrupt_open(void);
/* Whether one came. Does not block. */
bool interrupt_seen(int fd);
/* Keeps them waiting, in all threads started from now on; lets them through again, for a child. */
void interrupt_block(void);
void interrupt_unblock(void);

#endif
