package waits

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// recordings are views of programs of which each line is one. Make them with "make record".
const recordings = "testdata/waits.jsonl"

// A recording is what a look saw of a program that had got to where it stays.
type recording struct {
	Script string `json:"script"`
	On     string `json:"on"`             // "pipe", "terminal" or "attack"
	With   string `json:"with,omitempty"` // the version of the program
	Arch   string `json:"arch"`           // whose numbers of system calls these are
	Output string `json:"output,omitempty"`
	View   view   `json:"view"`
}

// A view has the members of a tree and what the system answered about them. It is a [waitQuestions].
type view struct {
	Members []member                   `json:"members"`
	Answers map[string]json.RawMessage `json:"answers,omitempty"`

	live   *procfs.Reader // asked while it is recorded; nil afterwards
	absent []string       // questions that were not recorded
}

type member struct {
	PID      int      `json:"pid"`
	Parent   int      `json:"parent"`
	State    string   `json:"state"`
	Start    uint64   `json:"start"`
	Terminal uint64   `json:"terminal,omitempty"`
	Status   int      `json:"status,omitempty"`
	Unread   bool     `json:"unread,omitempty"` // its threads could not be read
	Threads  []string `json:"threads,omitempty"`
}

// noAnswer is an answer that is not ok.
const noAnswer = `"?"`

// ask returns the answer to a question, from the system or from the recording.
func ask[T any](v *view, question string, live func() (T, bool)) (answer T, ok bool) {
	if v.live != nil {
		text := []byte(noAnswer)
		if answer, ok = live(); ok {
			text, _ = json.Marshal(answer)
		}
		v.Answers[question] = text
		return answer, ok
	}
	text, known := v.Answers[question]
	if !known {
		v.absent = append(v.absent, question)
	}
	ok = known && string(text) != noAnswer && json.Unmarshal(text, &answer) == nil
	return answer, ok
}

// of names a process in a question: the one that looks has no id here, since one that was recorded may have that of this
// process now.
func of(pid int) string {
	if pid == 0 {
		return "self"
	}
	return strconv.Itoa(pid)
}

func (v *view) HasTimers(pid int) bool {
	has, _ := ask(v, "HasTimers "+of(pid), func() (bool, bool) { return v.live.HasTimers(pid), true })
	return has
}

func (v *view) InodeOf(pid, fd int) (uint64, bool) {
	return ask(v, fmt.Sprint("InodeOf ", of(pid), " ", fd), func() (uint64, bool) { return v.live.InodeOf(pid, fd) })
}

func (v *view) Memory(pid int, at uint64, buf []byte) bool {
	b, ok := ask(v, fmt.Sprintf("Memory %s %x %d", of(pid), at, len(buf)), func() ([]byte, bool) { ok := v.live.Memory(pid, at, buf); return slices.Clone(buf), ok })
	copy(buf, b)
	return ok
}

func (v *view) OpenFile(pid, fd int) (procfs.Open, bool) {
	return ask(v, fmt.Sprint("OpenFile ", of(pid), " ", fd), func() (procfs.Open, bool) { return v.live.OpenFile(pid, fd) })
}

func (v *view) OpenFiles(pid int) ([]procfs.Open, bool) {
	return ask(v, "OpenFiles "+of(pid), func() (all []procfs.Open, ok bool) {
		all, ok = v.live.OpenFiles(cmp.Or(pid, os.Getpid()))
		return slices.DeleteFunc(all, func(o procfs.Open) bool { // what is not looked at
			return !strings.HasPrefix(o.Link, "pipe:") && !strings.HasPrefix(o.Link, "socket:") && o.Link != "anon_inode:[io_uring]"
		}), ok
	})
}

func (v *view) Polled(pid int, at, n uint64) ([]procfs.PollFD, bool) {
	return ask(v, fmt.Sprintf("Polled %s %x %d", of(pid), at, n), func() ([]procfs.PollFD, bool) { return v.live.Polled(pid, at, n) })
}

func (v *view) Refers(f procfs.File, p *procfs.Process, fd int, o procfs.Open) bool {
	yes, _ := ask(v, fmt.Sprint("Refers ", of(p.PID), " ", fd), func() (bool, bool) { return v.live.Refers(f, p, fd, o), true })
	return yes
}

func (v *view) Selected(pid int, at, n uint64) ([]int, bool) {
	return ask(v, fmt.Sprintf("Selected %s %x %d", of(pid), at, n), func() ([]int, bool) { return v.live.Selected(pid, at, n) })
}

func (v *view) Targets(pid, epoll int) ([]procfs.Target, bool) {
	return ask(v, fmt.Sprint("Targets ", of(pid), " ", epoll), func() ([]procfs.Target, bool) { return v.live.Targets(pid, epoll) })
}

func (v *view) UnixPeer(inode uint64) (uint64, bool) {
	return ask(v, fmt.Sprint("UnixPeer ", inode), func() (uint64, bool) { return v.live.UnixPeer(inode) })
}

// newMember records a process with its threads.
func newMember(p atWork) member {
	m := member{PID: p.PID, Parent: p.Parent, State: string(p.State), Start: p.Start, Terminal: p.Terminal, Status: p.Status, Unread: !p.ok}
	for _, t := range p.threads {
		text := fmt.Sprint(t.Call)
		for _, a := range t.Args {
			text += fmt.Sprintf(" %x", a)
		}
		for strings.HasSuffix(text, " 0") {
			text = strings.TrimSuffix(text, " 0")
		}
		switch {
		case t.Running:
			text = "running"
		case t.Narrow:
			text += " narrow"
		}
		m.Threads = append(m.Threads, text)
	}
	return m
}

// read returns the process with its threads.
func (m *member) read() atWork {
	p := atWork{ok: !m.Unread, returned: true}
	p.PID, p.Parent, p.State, p.Start, p.Terminal, p.Status = m.PID, m.Parent, m.State[0], m.Start, m.Terminal, m.Status
	for _, text := range m.Threads {
		t := procfs.Thread{Call: -1}
		words := strings.Fields(text)
		if t.Running = text == "running"; !t.Running {
			t.Call, _ = strconv.Atoi(words[0])
			if t.Narrow = words[len(words)-1] == "narrow"; t.Narrow {
				words = words[:len(words)-1]
			}
			for i, word := range words[1:] { // without the zeros at the end
				t.Args[i], _ = strconv.ParseUint(word, 16, 64)
			}
		}
		p.threads = append(p.threads, t)
	}
	return p
}

// judge applies the rule to a view, as examine does to a tree.
func (v *view) judge() (State, int) {
	l := &waitLook{reader: v}
	var read []atWork
	for i := range v.Members {
		read = append(read, v.Members[i].read())
		l.members = append(l.members, read[i].Process)
	}
	all := l.classify(read)
	if pid := stoppedByTerminal(all); pid != 0 {
		return StoppedByTerminal, pid
	}
	return verdict(all)
}

// prompt returns the line in which the cursor stands after the output.
func (r *recording) prompt() string {
	s := screen.New(screen.Config{Terminal: r.On == "terminal"})
	s.Write([]byte(r.Output))
	return strings.TrimSpace(strings.ReplaceAll(string(s.Line()), "\t", " "))
}

// finding returns what procgroup says of what was recorded.
func (r *recording) finding() (f found, prompt string) {
	waiting, _ := r.View.judge()
	switch prompt = r.prompt(); {
	case waiting == InputCertainly:
		return certainly, prompt
	case waiting == InputIfPrompted && prompt != "":
		return probably, prompt
	}
	return no, ""
}

func (r *recording) hasTimers() bool {
	for question, answer := range r.View.Answers {
		if strings.HasPrefix(question, "HasTimers ") && string(answer) == "true" {
			return true
		}
	}
	return false
}

func readRecordings(t *testing.T) map[string]recording {
	t.Helper()
	all := make(map[string]recording)
	f, err := os.Open(recordings)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all[r.On+"\x00"+r.Script] = r
	}
	return all
}

// SPEC 6.18: programs that wait for input are found to do so, with what they ask, and no other one is: neither those that
// agents run, nor those with which the rule was attacked. They are judged as they were recorded; Examples of
// procgroup runs some of them.
func TestRecordedPrograms(t *testing.T) {
	all := readRecordings(t)
	judged := 0
	judge := func(on, script string, want found, wantPrompt string) {
		r, ok := all[on+"\x00"+script]
		if !ok || r.Arch != runtime.GOARCH {
			return
		}
		judged++
		got, prompt := r.finding()
		switch {
		case want == missed && got != no:
			t.Errorf("%s, %s: it is found, so the table of known misses is wrong", on, script)
		case want == probably && (got == certainly || r.hasTimers()): // as its timers run: vi is missed while one does
		case want != missed && got != want, wantPrompt != "" && prompt != wantPrompt:
			t.Errorf("%s, %s: %v with the prompt %q, want %v with %q", on, script, got, prompt, want, wantPrompt)
		case len(r.View.absent) > 0:
			t.Errorf("%s, %s: record it anew: it has no answer to %v", on, script, r.View.absent)
		}
	}
	for _, p := range programs {
		judge("pipe", p.script, p.pipe, p.prompt)
		judge("terminal", p.script, p.terminal, "")
	}
	for _, a := range attacks {
		judge("attack", a.script, no, "")
	}
	if judged < 300 && runtime.GOARCH == "amd64" {
		t.Errorf("only %d of %d recordings are of a program in the tables", judged, len(all))
	}
}

// SPEC 6.18: of several processes that read the input, the youngest asks.
func TestTheYoungestAsks(t *testing.T) {
	reader := func(pid int, start uint64) (w waiter) {
		w.PID, w.Start, w.class = pid, start, onInput
		return w
	}
	for _, all := range [][]waiter{{reader(1, 10), reader(2, 20), reader(3, 15)}, {reader(2, 20), reader(1, 10)}} {
		if waiting, asks := verdict(all); waiting != InputCertainly || asks != 2 {
			t.Errorf("%v by %d", waiting, asks)
		}
	}
}

// A process that may not be read, or is about to go on, makes the answer unknown, whatever the others do.
func TestNothingIsClaimedOfTheUnknown(t *testing.T) {
	all := readRecordings(t)
	r := all["pipe\x00cat | cat"]
	if f, _ := r.finding(); f != certainly || len(r.View.Members) < 2 {
		t.Fatalf("%v of %d processes", f, len(r.View.Members))
	}
	for what, change := range map[string]func(*member){
		"unread":  func(m *member) { m.Unread = true },
		"running": func(m *member) { m.State = "R" },
		"a disk":  func(m *member) { m.State = "D" },
		"stopped": func(m *member) { m.State = "T" },
		"thread":  func(m *member) { m.Threads = append(slices.Clone(m.Threads), "running") },
		"narrow":  func(m *member) { m.Threads = []string{m.Threads[0] + " narrow"} },
		"no call": func(m *member) { m.Threads = append(slices.Clone(m.Threads), "-1") },
	} {
		for i := range r.View.Members {
			c := r
			c.View.Members = slices.Clone(r.View.Members)
			change(&c.View.Members[i])
			if f, _ := c.finding(); f == certainly {
				t.Errorf("%s, process %d: %v", what, i, f)
			}
		}
	}
}

// The documentation has the table. UPDATE=1 writes it there.
func TestTableOfPrograms(t *testing.T) {
	const page, begin, end = "../../../docs/waiting.md", "<!-- table -->\n", "<!-- end -->"
	words := map[found]string{no: "–", probably: "probably", certainly: "certainly", missed: "**missed**"}
	var b strings.Builder
	b.WriteString("| Program | on a pipe | on a terminal |\n|---|---|---|\n")
	for _, p := range programs {
		script := strings.ReplaceAll(strings.ReplaceAll(p.script, "|", `\|`), "\n", " ")
		mark := "`"
		if strings.Contains(script, mark) {
			mark = "``"
		}
		fmt.Fprintf(&b, "| %s%s%s | %s | %s |\n", mark, script, mark, words[p.pipe], words[p.terminal])
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatal("no table")
	case table == b.String():
	case os.Getenv("UPDATE") == "":
		t.Fatal("the table of the page is another one; UPDATE=1 writes it")
	default:
		if err := os.WriteFile(page, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
