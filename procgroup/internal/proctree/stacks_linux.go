package proctree

import (
	"cmp"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// stackSignals are the signals on which programs write their stacks.
var stackSignals = map[procfs.Program]unix.Signal{
	procfs.GoProgram:     unix.SIGQUIT,
	procfs.JavaProgram:   unix.SIGQUIT,
	procfs.PythonProgram: unix.SIGABRT,
}

// StackWriters implements Tree.StackWriters. It sends nothing to a process that does not show everything in time.
//
// The processes are asked one after the other, in equal parts of the time: asked at once, they would mix their
// stacks. The youngest come first, because their stacks may have to be passed on by the others, which end when they
// are asked. The go command, for example, prints what a test has written when the test has ended, and nothing once it
// got SIGQUIT.
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

// stackSignalsOf returns for each process the signal on which it writes its stacks, or 0.
func stackSignalsOf(patience *procfs.Patience, all []proc, more func() bool) []unix.Signal {
	sigs, _ := procfs.Gather(patience, len(all), func(r *procfs.Reader, i int) unix.Signal {
		if !more() {
			return 0
		}
		return stackSignals[r.Program(&all[i].Process)]
	})
	return sigs
}

// A stackWriter is a process that writes its stacks on a signal.
type stackWriter struct {
	proc
	sig unix.Signal
}

// ask sends the signal, unless the process has become another program since it was recognised, which may have been long
// ago: the other program would just end, or do something else.
func (w stackWriter) ask(patience *procfs.Patience, inTime func() bool) {
	if stackSignalsOf(patience, []proc{w.proc}, inTime)[0] != w.sig {
		return
	}
	signalProc(w.Key(), w.sig)
	if w.State == 'T' { // stopped, for example by SIGSTOP: it would write only when it is continued to end
		signalProc(w.Key(), unix.SIGCONT)
	}
}
