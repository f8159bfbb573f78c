/*
 * passphrase.h - reads passphrases and forgets them again.
 *
 * They live in libsodium's guarded memory, locked where the limits allow it,
 * and are wiped when freed. A passphrase is bytes without NUL and newline, 1 to
 * PASSPHRASE_MAX of them; only its newline is taken off, no blanks.
 */
#ifndef TOOLS_PASSPHRASE_H
#define TOOLS_PASSPHRASE_H

#define PASSPHRASE_MAX 1024

/* Asks on the terminal without echo. 0, -ENOTTY (there is none), -EINVAL (empty or too long), other errno. */
int passphrase_ask(const char *prompt, char **ret_passphrase);
/* Reads up to the first newline or the end. 0, -EINVAL (empty, too long, a NUL in it), other errno. */
int passphrase_read(int fd, char **ret_passphrase);
void passphrase_free(char *passphrase); /* wipes; takes NULL */

#endif
