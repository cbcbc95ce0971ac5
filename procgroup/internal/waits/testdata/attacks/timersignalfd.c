// A timer of POSIX whose signal comes through a descriptor.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
int main(void) {
	sigset_t m; sigemptyset(&m); sigaddset(&m, SIGALRM); sigprocmask(SIG_BLOCK, &m, 0);
	int s = signalfd(-1, &m, 0), e = epoll_create1(0);
	timer_t t; timer_create(CLOCK_MONOTONIC, 0, &t);
	struct itimerspec i = {{60, 0}, {60, 0}}; timer_settime(t, 0, &i, 0);
	struct epoll_event v = {EPOLLIN}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v); epoll_ctl(e, EPOLL_CTL_ADD, s, &v);
	epoll_wait(e, &v, 1, -1); }
