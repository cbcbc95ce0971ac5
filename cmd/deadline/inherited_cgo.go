//go:build unix && cgo

package main

/*
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>

static unsigned char deadline_ignored[65];
static unsigned char deadline_closed[3];

__attribute__((constructor)) static void deadline_look(void)
{
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction now;
		deadline_ignored[sig] = sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
	}
	for (int fd = 0; fd < 3; fd++)
		deadline_closed[fd] = fcntl(fd, F_GETFD) < 0;
}

static int deadline_was_ignored(int sig) { return deadline_ignored[sig]; }
static int deadline_was_closed(int fd) { return deadline_closed[fd]; }
*/
import "C"
import "syscall"

// knowsInherited says that wasIgnored and wasClosed are exact. The Go runtime installs signal handlers and opens closed
// standard streams before any Go code runs. The constructor in C runs before that, and records the state.
const knowsInherited = true

// wasIgnored reports whether a signal was ignored when the program was started.
func wasIgnored(sig syscall.Signal) bool {
	return 0 < sig && sig < 65 && C.deadline_was_ignored(C.int(sig)) != 0
}

// wasClosed reports whether a standard stream was closed when the program was started.
func wasClosed(fd int) bool { return C.deadline_was_closed(C.int(fd)) != 0 }
