package proctree

import (
	"cmp"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// stackSignals has, by kind of program, the signal that makes the program write the stacks of its threads.
var stackSignals = map[procfs.Program]unix.Signal{
	procfs.GoProgram:     unix.SIGQUIT,
	procfs.JavaProgram:   unix.SIGQUIT,
	procfs.PythonProgram: unix.SIGABRT,
}

// StackWriters implements Tree.StackWriters. It leaves out a process whose program cannot be recognized in time.
//
// The returned function signals the processes one after the other, at equal intervals, because processes that write at
// the same time mix their stacks. The youngest comes first: an older process may have to pass on the output of the
// younger one, and many programs end after they have written their stacks. The go command, for example, prints the
// output of a test once the test has ended, and does not print it after SIGQUIT.
func (t *linuxTree) StackWriters(until time.Time, only func(pid int) bool) (ask func(until time.Time)) {
	b, patience := &budget{until: until}, t.patience(time.Until(until))
	members, _ := t.view(patience, b)
	members = slices.DeleteFunc(members, func(p proc) bool { return p.Dead() || only != nil && !only(p.PID) })
	var writers []stackWriter
	for i, sig := range stackSignalsOf(patience, members, b.next) {
		if sig != 0 {
			writers = append(writers, stackWriter{members[i], sig})
		}
	}
	if len(writers) == 0 {
		return nil
	}
	slices.SortFunc(writers, func(a, b stackWriter) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), cmp.Compare(b.PID, a.PID))
	})
	return func(until time.Time) {
		again := t.patience(time.Until(until))
		inTime := func() bool { return time.Now().Before(until) }
		for i, w := range writers {
			w.ask(again, inTime)
			if left := len(writers) - i; left > 1 {
				time.Sleep(time.Until(until) / time.Duration(left))
			}
		}
	}
}

// stackSignalsOf returns, for each process, the signal that makes it write its stacks. The signal is 0 if there is
// none, if the process cannot be read in time, or once more returns false.
func stackSignalsOf(patience *procfs.Patience, all []proc, more func() bool) []unix.Signal {
	sigs, _ := procfs.Gather(patience, len(all), func(r *procfs.Reader, i int) unix.Signal {
		if !more() {
			return 0
		}
		return stackSignals[r.Program(&all[i].Process)]
	})
	return sigs
}

// A stackWriter is a process that writes its stacks when it receives sig.
type stackWriter struct {
	proc
	sig unix.Signal
}

// ask sends w.sig, unless the process no longer runs a program that writes its stacks on w.sig. Since StackWriters has
// recognized the program, the process may have called exec, and the signal might just end the new program.
func (w stackWriter) ask(patience *procfs.Patience, inTime func() bool) {
	if stackSignalsOf(patience, []proc{w.proc}, inTime)[0] != w.sig {
		return
	}
	signalProc(w.Key(), w.sig)
	if w.State == 'T' { // stopped: it handles the signal only once it is continued
		signalProc(w.Key(), unix.SIGCONT)
	}
}
