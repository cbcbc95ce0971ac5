// What io_uring does is announced by an eventfd.
#include <linux/io_uring.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
	struct io_uring_params p; memset(&p, 0, sizeof p);
	int r = syscall(SYS_io_uring_setup, 8, &p), f = eventfd(0, 0), e = epoll_create1(0);
	if (r < 0) return 77;
	syscall(SYS_io_uring_register, r, IORING_REGISTER_EVENTFD, &f, 1);
	struct epoll_event v = {EPOLLIN}; epoll_ctl(e, EPOLL_CTL_ADD, 0, &v); epoll_ctl(e, EPOLL_CTL_ADD, f, &v);
	epoll_wait(e, &v, 1, -1); }
