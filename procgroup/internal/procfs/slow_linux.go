package procfs

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// beginning reads as much of the file /proc/<pid>/name as fits into buf. question is the name of the question, see ask.
func (r *Reader) beginning(question string, pid int, name string, buf []byte) (text []byte, err error) {
	if late := r.ask(question, pid, func() { text, err = r.read(pid, name, buf, false) }); late != nil {
		return nil, late
	}
	return text, err
}

// Environ reads the environment of p: strings that each end with a zero byte. The result is valid until the next call.
// If the main thread of p has ended, Environ reads the environment through another thread. It may block; see Gather.
func (r *Reader) Environ(p *Process) (env []byte, err error) {
	if r.env == nil {
		r.env = make([]byte, 16<<10)
	}
	late := r.ask("Environ", p.PID, func() {
		if p.State == 'Z' {
			env, err = r.environOfThreads(p.PID)
		} else {
			env, err = r.read(p.PID, "/environ", r.env, true)
		}
		r.env = env[:cap(env)]
	})
	if late != nil {
		return nil, late
	}
	return env, err
}

// environOfThreads reads the environment of a process, whose main thread has ended, through one of its other threads.
func (r *Reader) environOfThreads(pid int) (env []byte, err error) {
	threads, err := r.namesIn("/proc/" + strconv.Itoa(pid) + "/task")
	env = r.env[:0]
	for _, thread := range threads {
		env, err = r.read(pid, "/task/"+thread+"/environ", env, true)
		if len(env) > 0 {
			break
		}
	}
	return env, err
}

// Complete reports whether env, an environment, is not empty and ends with a zero byte. If a page of an environment
// cannot be read, the read ends early without an error.
func Complete(env []byte) bool { return len(env) > 0 && env[len(env)-1] == 0 }

// Values returns the values of the variable name in an environment, in which it may be set more than once.
func Values(env []byte, name string) (values []string) {
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if key, value, ok := bytes.Cut(entry, []byte{'='}); ok && string(key) == name {
			values = append(values, string(value))
		}
	}
	return values
}

// Args reads the arguments of p, at most 4 KiB: strings that each end with a zero byte. The result is empty for a
// zombie, and if the arguments cannot be read. Args may block; see Gather.
func (r *Reader) Args(p *Process) []byte {
	text, _ := r.beginning("Args", p.PID, "/cmdline", make([]byte, 4<<10))
	return text
}

// Stack returns the innermost kernel functions in which p waits, such as "f < g" if g has called f. It returns "" if
// they cannot be read, which usually needs root. It may block; see Gather.
func (r *Reader) Stack(p *Process) string {
	text, _ := r.beginning("Stack", p.PID, "/stack", make([]byte, 4<<10))
	return parseStack(text)
}

// maxFrames bounds the functions that Stack returns.
const maxFrames = 3

// parseStack parses the content of /proc/<pid>/stack for Stack.
func parseStack(stack []byte) string {
	var names [][]byte
	for line := range bytes.Lines(stack) {
		_, name, ok := bytes.Cut(line, []byte("] "))
		if name, _, _ = bytes.Cut(name, []byte{'+'}); ok && len(names) < maxFrames {
			names = append(names, bytes.TrimSpace(name))
		}
	}
	return string(bytes.Join(names, []byte(" < ")))
}

// Bytes returns the number of bytes that p and the children that it has waited for have read and written. It counts the
// bytes of system calls or those from and to disks, as with a mapped file, whichever is more. It may block; see Gather.
func (r *Reader) Bytes(p *Process) (n uint64, err error) {
	text, err := r.beginning("Bytes", p.PID, "/io", make([]byte, 512))
	if err != nil {
		return 0, err
	}
	return parseIO(text), nil
}

// parseIO parses the content of /proc/<pid>/io for Bytes.
func parseIO(text []byte) uint64 {
	field := func(name string) uint64 {
		for line := range bytes.Lines(text) {
			if value, ok := bytes.CutPrefix(line, []byte(name+": ")); ok {
				return Uint(bytes.TrimSuffix(value, []byte{'\n'}))
			}
		}
		return 0
	}
	return max(field("rchar"), field("read_bytes")) + max(field("wchar"), field("write_bytes"))
}

// Gone reports whether err, from a read of a file in /proc/<pid>, means that the process has ended.
func Gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }
