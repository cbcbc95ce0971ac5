package procgroup

import (
	"bytes"
	"time"
)

// stacksTime is how much of the kill grace the programs may take to write their stacks. Tests have more.
var stacksTime = 200 * time.Millisecond

// maxErrorStacks is how many bytes of the stacks are in the Stack of the error.
const maxErrorStacks = 64 << 10

// WithStacks makes the programs of the command write the stacks of their threads before a limit stops
// the command. The stacks are in [Result.Stacks] and, with the list of processes, in the Stack of the
// [*timeout.Error], so that "%+v" and the log show them too.
//
// A signal is sent only to a process that is known to handle it by writing its stacks:
//
//   - a program that was built by Go gets SIGQUIT, and ends with exit code 2. If the program
//     handles SIGQUIT itself, its handler decides.
//   - a JVM gets SIGQUIT, and goes on; with -Xrs it gets no signal.
//   - Python gets SIGABRT, if PYTHONFAULTHANDLER was set in the environment of the process and all
//     signals of the fault handler are handled. It ends, and may leave a core file if core files are
//     enabled. If the program has put its own handler over the fault handler, its handler decides. A
//     program that calls faulthandler.enable, as pytest does, needs the variable too: from outside,
//     its handler is not distinguished from one that does something else.
//
// No other process gets a signal, and neither does a process that this program may not examine, such
// as one of another user. Nothing is sent before an abort, or if the command is stopped for another
// reason, such as [ErrInput]. The programs have 200 ms of the kill grace, or half of the grace if
// that is less; without a grace nothing is sent. To recognise them takes a few milliseconds, and on a
// busy machine up to another 200 ms, or a quarter of the grace. They are asked one after the other,
// the youngest first, so that their texts are not mixed. Then the command is stopped as without this
// option: the outcome and the exit code are those of the limit, and all processes are asked to end.
//
// The stacks are distinguished from the output by their first line. From that line on, everything
// that any process writes to the same stream is taken for stacks, until the time is over or the
// stacks of a JVM end. Stacks are neither in the output of the Result nor passed on; the output
// before and after them is complete. The first 256 KiB of the stacks are kept. If a program takes
// longer, the rest of its stacks may be in the output.
//
// Linux only. On other systems this option has no effect.
func WithStacks() Option {
	return optionFunc(func(s *settings) { s.stacks = true })
}

// writeStacks has the programs write their stacks. grace is what is left before they are killed.
func (p *Process) writeStacks(grace time.Duration) {
	if grace <= 0 {
		return
	}
	half := time.Now().Add(grace / 2)
	ask := p.tree.StackWriters(time.Now().Add(min(stacksTime, grace/4)), nil)
	if ask == nil {
		return
	}
	// Their time begins now: to recognise them takes next to none, unless the machine is busy, and then they need all of it.
	until := time.Now().Add(stacksTime)
	if until.After(half) {
		until = half
	}
	p.out.BeginStacks()
	ask(until)
	p.out.EndStacks(until)
}

// withStacks adds the stacks of r to a list of processes.
func withStacks(list []byte, r *Result) []byte {
	text := []byte(r.Stacks.Text())
	if len(text) == 0 {
		return list
	}
	if len(text) > maxErrorStacks {
		text = text[:bytes.LastIndexByte(text[:maxErrorStacks], '\n')+1]
		text = append(text, "[more in the Result]\n"...)
	}
	if len(list) == 0 {
		return text
	}
	return bytes.Join([][]byte{list, text}, []byte{'\n'})
}
