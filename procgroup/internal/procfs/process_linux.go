package procfs

import (
	"bytes"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// A Process holds the contents of /proc/<pid>/stat.
type Process struct {
	PID, Parent, Group int
	State              byte
	Terminal           uint64        // device number of the controlling terminal, or 0
	Threads            int           // number of threads that have not ended; a zombie's main thread counts
	Start              uint64        // in clock ticks since boot; see Age
	EnvironAt          uint64        // the address of the environment; 0 if absent or hidden
	CPU, ChildrenCPU   time.Duration // processor time of the process and of its reaped children, in ticks of 10 ms
	Faults             uint64        // page faults of the process and of its reaped children
	Status             int           // wait(2) status of a zombie, or the signal that has stopped a process; 0 if hidden
	Kernel             bool          // a thread of the kernel
	Exiting            bool          // the main thread is exiting, and shows no environment anymore
}

// A Key identifies a process: a later process with the same id has a later Start.
type Key struct {
	PID   int
	Start uint64
}

// Key returns the key of p.
func (p *Process) Key() Key { return Key{p.PID, p.Start} }

// Dead reports whether all threads of p have ended, so that there is nothing to kill. The kernel shows a process whose
// main thread has ended as a zombie, even while another thread runs on.
func (p *Process) Dead() bool {
	return (p.State == 'Z' && p.Threads <= 1) || p.State == 'X' || p.State == 'x'
}

// Running reports whether p is running, ready to run, or in an uninterruptible wait, as for a disk.
func (p *Process) Running() bool { return p.State == 'R' || p.State == 'D' }

// CPUTime returns the processor time that p has used until now, or p.CPU if it cannot be read.
func (p *Process) CPUTime() time.Duration {
	if d, ok := CPUTime(p.PID); ok {
		return d
	}
	return p.CPU
}

// CPUTime returns the processor time that a process has used until now. It reads the clock of the process, see
// clock_getcpuclockid(3), because Process.CPU is too coarse: 1 % of a core over a short time is less than a tick. ok is
// false if the process is gone.
func CPUTime(pid int) (d time.Duration, ok bool) {
	const cpuclockSched = 2
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|cpuclockSched), &ts)
	return time.Duration(ts.Nano()), err == nil
}

// Age returns the time since p began, or 0 if the system clock cannot be read.
func (p *Process) Age() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return max(time.Duration(now.Nano())-ticks(p.Start), 0)
}

// ticks converts a number of clock ticks, the unit of times in /proc, which is 10 ms on all systems that Go runs on.
func ticks(n uint64) time.Duration { return time.Duration(n) * 10 * time.Millisecond }

// parseStat parses /proc/<pid>/stat. ok is false if a field is missing. The program name, in parentheses, may contain
// any bytes.
func parseStat(b []byte) (p Process, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open || end+2 > len(b) {
		return Process{}, false
	}
	p.PID = int(Uint(b[:open-1]))
	rest := b[end+2:]
	for field := 3; field <= 52; field++ {
		word, after, _ := bytes.Cut(rest, []byte{' '})
		switch field {
		case 3:
			if len(word) != 1 {
				return Process{}, false
			}
			p.State = word[0]
		case 4:
			p.Parent = int(Uint(word))
		case 5:
			p.Group = int(Uint(word))
		case 7:
			// The minor number is in two parts around the major one.
			n := Uint(word)
			p.Terminal = unix.Mkdev(uint32(n>>8&0xfff), uint32(n&0xff|n>>12&0xfff00))
		case 9:
			const exiting, kthread = 0x00000004, 0x00200000
			p.Exiting = Uint(word)&exiting != 0
			p.Kernel = Uint(word)&kthread != 0
		case 10, 11:
			p.Faults += Uint(word)
		case 14, 15:
			p.CPU += ticks(Uint(word))
		case 16, 17:
			p.ChildrenCPU += ticks(Uint(word))
		case 20:
			p.Threads = int(Uint(word))
		case 22:
			p.Start = Uint(word)
			ok = len(word) > 0
		case 50:
			p.EnvironAt = Uint(word)
		case 52:
			p.Status = int(Uint(bytes.TrimSuffix(word, []byte{'\n'})))
		}
		rest = after
	}
	return p, ok
}

// Uint parses a decimal number that fits into an int64, and returns 0 for anything else.
func Uint(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}
