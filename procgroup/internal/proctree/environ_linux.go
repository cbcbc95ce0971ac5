package proctree

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// eachWithEnviron is each, with the environments of those that are not older than since. Those that
// are given up are late; it is not complete then.
func (r *procReader) eachWithEnviron(w *waiting, pids []int, since uint64, more func() bool) (all []proc, complete bool) {
	type answer struct {
		p     proc
		ok    bool
		short bool
		other *asked
	}
	wanted := func(p *proc, kernel bool) bool { return !kernel && !p.dead() && p.start >= since }
	read := func(r *procReader, pid int) (a answer) {
		var kernel bool
		if a.p, kernel, a.ok = r.status(pid); a.ok && wanted(&a.p, kernel) {
			a.other = r.environ(&a.p)
		}
		a.short = r.short
		return a
	}
	var over atomic.Bool
	answers, returned := gather(w, len(pids), func(r *procReader, i int) answer {
		if over.Load() || !more() {
			over.Store(true)
			return answer{}
		}
		return read(r, pids[i])
	})

	// What others have asked for: all together, and not one after the other.
	var again []int
	for i := range answers {
		a := &answers[i]
		if a.other == nil {
			continue
		}
		if a.p.late = true; !w.await(a.other) {
			continue
		}
		if a.p.cookies = a.other.p.cookies; a.p.cookies != "" {
			a.p.late = false
		} else {
			again = append(again, i) // it may be of before this look began
		}
	}
	anew, came := gather(w, len(again), func(r *procReader, i int) answer { return read(r, pids[again[i]]) })
	for i, a := range anew {
		if a.other != nil && w.await(a.other) { // this one has begun since
			a.p, a.other = a.other.p, nil
		}
		if came[i] && a.other == nil {
			answers[again[i]] = a
		}
	}

	all, complete = make([]proc, 0, len(pids)), !over.Load()
	for i, a := range answers {
		if !returned[i] {
			if !more() {
				complete = false
				continue
			}
			var kernel bool
			a.p, kernel, a.ok = r.status(pids[i])
			a.p.late = wanted(&a.p, kernel)
		}
		r.short = r.short || a.short
		if a.ok {
			all = append(all, a.p)
			complete = complete && !a.p.late
		}
	}
	return all, complete && !r.short
}

// environ reads the environment of p, or returns who else does.
func (r *procReader) environ(p *proc) (other *asked) {
	if r.env == nil {
		r.env = make([]byte, 16<<10)
	}
	return r.ask(p, "/environ", func(a *asked) {
		env, err := r.read(p.pid, "/environ", r.env, true)
		if p.state == 'Z' { // it goes with the main thread, as far as that can tell
			p.exiting = false
			env, err = r.environOfThreads(p.pid, env)
		}
		r.env = env[:cap(env)]
		// Where a page of it cannot be had it ends early, without an error.
		p.blank = err == nil && (len(env) == 0 || env[len(env)-1] != 0)
		p.hidden = err != nil && err != unix.ENOENT && err != unix.ESRCH // which are its end
		p.cookies = cookies(env)
		a.p = *p
	})
}

// environOfThreads is the environment of a process without a main thread, as its other
// threads show it.
func (r *procReader) environOfThreads(pid int, buf []byte) (env []byte, err error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	env = buf[:0]
	for _, thread := range threads {
		env, err = r.read(pid, "/task/"+thread.Name()+"/environ", env, true)
		if len(env) > 0 {
			break
		}
	}
	return env, err
}

// cookies returns the value of the variable. A variable that is set more than once has all
// its values looked at.
func cookies(env []byte) string {
	var all []string
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(cookieEnv+"=")); ok {
			all = append(all, string(value))
		}
	}
	return strings.Join(all, ",")
}
