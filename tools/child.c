#include "tools/child.h"

#include <poll.h>
#include <sys/wait.h>

#define STEP_MS 10

bool child_ends(pid_t pid, unsigned ms, int *ret_status)
{
	int status;

	for (unsigned waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited += STEP_MS) {
		if (waited >= ms)
			return false;
		poll(NULL, 0, STEP_MS);
	}
	if (ret_status)
		*ret_status = status;
	return true;
}
