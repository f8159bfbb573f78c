#include "tools/passphrase.h"

#include <bsd/readpassphrase.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

/* Moves what was read into guarded memory and wipes where it was. */
static int take(char *text, size_t size, char **ret_passphrase)
{
	char *passphrase = NULL;
	int result = -EINVAL;

	if (size && size <= PASSPHRASE_MAX && !memchr(text, '\0', size)) {
		passphrase = sodium_init() < 0 ? NULL : sodium_malloc(size + 1);
		result = passphrase ? 0 : -ENOMEM;
	}
	if (passphrase) {
		memcpy(passphrase, text, size);
		passphrase[size] = '\0';
		*ret_passphrase = passphrase;
	}
	sodium_memzero(text, size);
	return result;
}

int passphrase_ask(const char *prompt, char **ret_passphrase)
{
	char text[PASSPHRASE_MAX + 2];

	if (!readpassphrase(prompt, text, sizeof(text), RPP_REQUIRE_TTY)) {
		int error = errno;

		sodium_memzero(text, sizeof(text));
		return error == ENOENT || error == ENXIO ? -ENOTTY : -error;
	}
	return take(text, strlen(text), ret_passphrase);
}

int passphrase_read(int fd, char **ret_passphrase)
{
	char text[PASSPHRASE_MAX + 2];
	size_t size = 0;
	int result = 0;

	/* Byte by byte: what follows the newline is the next reader's, a second passphrase perhaps. */
	while (size < sizeof(text)) {
		ssize_t got = read(fd, text + size, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			result = -errno;
		if (got <= 0 || text[size] == '\n')
			break;
		size++;
	}
	if (!result)
		return take(text, size, ret_passphrase);
	sodium_memzero(text, size);
	return result;
}

void passphrase_free(char *passphrase)
{
	if (passphrase)
		sodium_free(passphrase);
}
