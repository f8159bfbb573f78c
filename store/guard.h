/*
 * guard.h - reading mapped memory whose file may be shorter or more broken than
 * it should: a signal in a guarded section becomes an error instead of death.
 *
 *     sigjmp_buf jump;
 *     if (GUARD_ENTER(jump)) return -EIO;      a SIGBUS or SIGSEGV came
 *     ... read mapped memory; take no lock, allocate nothing ...
 *     guard_leave();
 *
 * Costs 50 ns. Signals of threads that are not inside a section go to whatever
 * handler was there before.
 */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include <setjmp.h>
#include <stdbool.h>

/* Before any section; may be called again. */
void guard_install(void);

void guard_enter(sigjmp_buf *jump);
void guard_leave(void);

#define GUARD_ENTER(jump) \
	(sigsetjmp(jump, 0) ? (guard_leave(), true) : (guard_enter(&(jump)), false))

/*
 * The thread that writes the index cannot go on after such a signal, and must
 * not: with this, it prints one line and the process ends. All that was
 * acknowledged is in the journal.
 */
void guard_fatal(bool fatal);

#endif
