// A timer of POSIX that runs a function in a thread.
#include <signal.h>
#include <time.h>
#include <unistd.h>
static void f(union sigval v) { (void)v; }
int main(void) {
	struct sigevent e = {0}; e.sigev_notify = SIGEV_THREAD; e.sigev_notify_function = f;
	timer_t t; timer_create(CLOCK_MONOTONIC, &e, &t);
	struct itimerspec s = {{60, 0}, {60, 0}}; timer_settime(t, 0, &s, 0);
	char c; read(0, &c, 1); }
