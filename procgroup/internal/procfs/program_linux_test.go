package procfs

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// SPEC 6.22: only what Go has built counts as a Go program.
func TestIsGo(t *testing.T) {
	for path, want := range map[string]bool{"/proc/self/exe": true, "/bin/sh": false, "/proc/self/stat": false, "/dev/null": false} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := isGo(f); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestIsPython(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/bin/python": true, "/usr/bin/python3": true, "/usr/bin/python3.11": true, "/opt/python3.13t": true, "/usr/bin/python3.11 (deleted)": true,
		"/usr/bin/python3-config": false, "/usr/bin/pythonista": false, "/python3/sh": false, "": false,
	} {
		if got := isPython(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestHandledSignals(t *testing.T) {
	const status = "Name:\tx\nSigIgn:\t0000000000000004\nSigCgt:\t0000000000000024\nCapInh:\t0\n"
	if got, want := handledSignals([]byte(status)), signalBit(unix.SIGQUIT)|signalBit(unix.SIGABRT); got != want {
		t.Errorf("%x, want %x", got, want)
	}
	if got := handledSignals([]byte("SigCgt:\tx\n")); got != 0 {
		t.Errorf("%x", got)
	}
}

// An executable file may be anything behind its first page.
func FuzzIsGo(f *testing.F) {
	file := make([]byte, 400)
	copy(file, "\x7fELF\x02\x01\x01")
	file[0x28], file[0x3a], file[0x3c], file[0x3e] = 64, 64, 2, 1
	file[64+0x18], file[128+0x18], file[128+0x20] = 200, 220, 100
	copy(file[200:], buildInfoMagic)
	copy(file[220:], buildInfo)
	if !isGo(bytes.NewReader(file)) {
		f.Error("not found")
	}
	f.Add(file)
	f.Fuzz(func(t *testing.T, b []byte) { isGo(bytes.NewReader(b)) })
}
