package procfs

import (
	"bytes"
	"strconv"
	"strings"
)

// A Thread holds the contents of /proc/<pid>/task/<tid>/syscall.
type Thread struct {
	Running bool      // the thread is running, or ready to run
	Call    int       // the number of the system call in which the thread waits, or -1
	Args    [6]uint64 // the arguments of the call
	Narrow  bool      // the stack is in the first 4 GiB, as in a 32-bit program, whose calls have other numbers
}

// Threads reads the threads of p. ok is false, and the list is empty, if a thread may not be
// read or has ended meanwhile. Threads may block: see Gather.
func (r *Reader) Threads(p *Process) (all []Thread, ok bool) {
	_ = r.ask("Threads", p.PID, func() {
		names, err := r.namesIn("/proc/" + strconv.Itoa(p.PID) + "/task")
		if err != nil || len(names) == 0 {
			return
		}
		var buf [256]byte
		for _, name := range names {
			text, err := r.read(p.PID, "/task/"+name+"/syscall", buf[:], false)
			t, parsed := parseSyscall(text)
			if err != nil || !parsed {
				all = nil
				return
			}
			all = append(all, t)
		}
		ok = true
	})
	return all, ok
}

// parseSyscall parses the content of /proc/<pid>/task/<tid>/syscall: "running", or the number of the call, its
// arguments unless the number is -1, the stack pointer and the program counter. ok is false for any other text.
func parseSyscall(text []byte) (t Thread, ok bool) {
	words := bytes.Fields(text)
	if len(words) == 1 && string(words[0]) == "running" {
		return Thread{Running: true, Call: -1}, true
	}
	if len(words) != 9 && len(words) != 3 {
		return Thread{}, false
	}
	call, err := strconv.Atoi(string(words[0]))
	if err != nil || call < -1 || call >= 0 != (len(words) == 9) {
		return Thread{}, false
	}
	t.Call = call
	for i, word := range words[1 : len(words)-1] {
		hex, found := strings.CutPrefix(string(word), "0x")
		n, err := strconv.ParseUint(hex, 16, 64)
		if !found || err != nil {
			return Thread{}, false
		}
		if i < len(t.Args) && call >= 0 {
			t.Args[i] = n
		} else {
			t.Narrow = n < 1<<32
		}
	}
	return t, true
}

// HasTimers reports whether a process has timers of timer_create(2). It returns false if the kernel does not list them.
func (r *Reader) HasTimers(pid int) bool {
	var buf [1]byte
	text, err := r.beginning("HasTimers", pid, "/timers", buf[:])
	return err == nil && len(text) > 0
}
