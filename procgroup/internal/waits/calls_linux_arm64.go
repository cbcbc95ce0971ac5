package waits

import "golang.org/x/sys/unix"

// waitCalls has the kinds of the system calls of arm64 that may wait, by their numbers.
var waitCalls = map[int]waitCall{
	unix.SYS_READ: callRead, unix.SYS_READV: callRead, unix.SYS_PREAD64: callRead, unix.SYS_PREADV: callRead, unix.SYS_PREADV2: callRead,
	unix.SYS_PPOLL: callPpoll, unix.SYS_PSELECT6: callSelect,
	unix.SYS_EPOLL_PWAIT: callEpoll, unix.SYS_EPOLL_PWAIT2: callEpoll2,
	unix.SYS_FUTEX: callFutex,
	unix.SYS_WAIT4: callChild, unix.SYS_WAITID: callChild,
	unix.SYS_RT_SIGSUSPEND: callSignal, unix.SYS_RT_SIGTIMEDWAIT: callSignalWait,
	unix.SYS_NANOSLEEP: callSleep, unix.SYS_CLOCK_NANOSLEEP: callSleep,
	unix.SYS_RECVFROM: callRead, unix.SYS_RECVMSG: callRead, unix.SYS_RECVMMSG: callRead,
	unix.SYS_WRITE: callWrite, unix.SYS_WRITEV: callWrite,
}
