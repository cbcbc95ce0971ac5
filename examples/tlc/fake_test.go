package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fakeMode is the environment variable that makes Spin, the compiler and the verifier of the test binary.
const fakeMode = "TLC_TEST_FAKE"

const (
	fakeProgress = "Depth=      %d States=    %de+05 Transitions= 1.11e+05 Memory=   188.437\tt=     0.03 R=   3e+06\n"
	fakeSummary  = "State-vector 36 byte, depth reached 7, errors: %d\n       42 states, stored\n"

	veryLong = time.Hour // a fake lives for this long, if nobody ends it
)

// fake is Spin, the compiler or the verifier, depending on the arguments. The mode is
// how the verifier behaves.
func fake(mode string) {
	switch o := slices.Index(os.Args, "-o"); {
	case os.Args[1] == "-a" && mode == "stuck":
		time.Sleep(veryLong)
	case os.Args[1] == "-a" && mode == "demo" && !strings.Contains(fileText("model.pml"), "proctype"):
		os.Exit(1)
	case os.Args[1] == "-a":
		must(os.WriteFile("pan.c", []byte("/* a verifier */"), 0o600))
	case os.Args[1] == "-t":
		fmt.Println("  1:\tproc  0 (user:1) model.pml:12 (state 1)\t[fell over]")
	case o > 0:
		compileFake(os.Args[o+1])
	default:
		fakeVerifier(mode)
	}
	os.Exit(0)
}

// compileFake makes the verifier out of this program.
func compileFake(to string) {
	exe, err := os.Executable()
	must(err)
	if os.Link(exe, to) == nil {
		return
	}
	from, err := os.Open(exe)
	must(err)
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	must(err)
	_, err = io.Copy(f, from)
	must(err)
	must(f.Close())
}

func fakeVerifier(mode string) {
	switch mode {
	case "fine":
		fmt.Printf(fakeSummary, 0)
	case "wrong":
		fmt.Print("pan:1: assertion violated (x==1) (at depth 7)\n")
		fmt.Printf(fakeSummary, 1)
	case "incomplete":
		fmt.Print("error: max search depth too small\n")
		fmt.Printf(fakeSummary, 0)
	case "fails":
		fmt.Fprintln(os.Stderr, "pan: out of luck")
		os.Exit(3)
	case "mute":
	case "silent":
		time.Sleep(veryLong)
	case "deaf": // does not heed SIGTERM, nor does what it starts
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command(os.Args[0], "-child")
		child.Env = append(child.Environ(), fakeMode+"=deaf child")
		must(child.Start())
		report()
	case "deaf child":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(veryLong)
	case "flood":
		fmt.Print(strings.Repeat("All work and no play.\n", 10_000))
		fmt.Printf(fakeSummary, 0)
	case "demo": // the model says how
		switch text := fileText("model.pml"); {
		case strings.Contains(text, "philosopher"):
			fakeVerifier("wrong")
		case os.Args[1] != "-m1000000" || strings.Contains(text, "correct"):
			fakeVerifier("fine")
		case len(os.Args) > 2 && os.Args[2] == "-w30":
			report()
		default:
			fakeVerifier("silent")
		}
	case "crash":
		self, err := os.FindProcess(os.Getpid())
		must(err)
		must(self.Kill())
		time.Sleep(veryLong)
	default:
		panic("no such mode: " + mode + " in " + filepath.Base(os.Args[0]))
	}
}

// report makes progress for ever.
func report() {
	for i, begun := 1, time.Now(); time.Since(begun) < veryLong; i++ {
		fmt.Printf(fakeProgress, i, i)
		time.Sleep(10 * time.Millisecond)
	}
}

func fileText(name string) string {
	b, err := os.ReadFile(name)
	must(err)
	return string(b)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
