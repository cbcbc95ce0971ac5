package procfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Program is a kind of program that writes the stacks of its threads when it gets a certain signal.
type Program int

const (
	OtherProgram  Program = iota // any other program, or a program without such a handler
	GoProgram                    // ends after SIGQUIT
	JavaProgram                  // goes on after SIGQUIT
	PythonProgram                // ends after SIGABRT
)

// Program returns the kind of program that p runs, or OtherProgram if p has no handler for its signal or cannot be read.
// Without a handler, as in a JVM with -Xrs, or in Python without its fault handler, the signal would just end the process.
// Program may block: see Gather.
func (r *Reader) Program(p *Process) (kind Program) {
	var buf [4 << 10]byte
	status, err := r.beginning("Program", p.PID, "/status", buf[:])
	handled := handledSignals(status)
	if err != nil || handled&(signalBit(unix.SIGQUIT)|signalBit(unix.SIGABRT)) == 0 {
		return OtherProgram
	}
	_ = r.ask("Program", p.PID, func() { // a file system may be slow, or its server stopped
		switch {
		case handled&signalBit(unix.SIGQUIT) != 0 && runsGo(p.PID):
			kind = GoProgram
		case handled&signalBit(unix.SIGQUIT) != 0 && mapsFile(p.PID, "libjvm.so"):
			kind = JavaProgram
		case handled&faultSignals == faultSignals && runsPython(p.PID):
			kind = PythonProgram
		}
	})
	// The signals alone do not tell the fault handler from another handler of all of them, such as a crash reporter in an
	// extension or a function in Python that removes files. So the environment must say that the fault handler is on,
	// which python -I ignores. A program that puts its own handler over the fault handler cannot be told.
	if kind == PythonProgram {
		env, err := r.Environ(p)
		if values := Values(env, "PYTHONFAULTHANDLER"); err != nil || len(values) == 0 || values[0] == "" {
			return OtherProgram
		}
	}
	return kind
}

// faultSignals are the signals that Python's fault handler handles.
var faultSignals = signalBit(unix.SIGSEGV) | signalBit(unix.SIGFPE) | signalBit(unix.SIGABRT) | signalBit(unix.SIGBUS) | signalBit(unix.SIGILL)

func signalBit(sig unix.Signal) uint64 { return 1 << (sig - 1) }

// handledSignals parses the signals that have handlers in /proc/<pid>/status.
func handledSignals(status []byte) uint64 {
	_, line, _ := bytes.Cut(status, []byte("\nSigCgt:\t"))
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	mask, _ := strconv.ParseUint(string(line), 16, 64)
	return mask
}

// runsGo reports whether the executable of a process was built by Go.
func runsGo(pid int) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return false
	}
	defer f.Close()
	return isGo(f)
}

// The bounds of isGo, and the name of the section.
const (
	maxSections     = 512
	maxSectionNames = 64 << 10
	buildInfo       = ".go.buildinfo\x00"
	buildInfoMagic  = "\xff Go buildinf:"
)

// isGo reports whether an ELF file for this machine has the section that Go's linker writes, stripped or not. Package
// debug/buildinfo is not used: it is not made for files that somebody may have prepared, and this file is only
// known to be executable.
func isGo(f io.ReaderAt) bool {
	var h [64]byte
	if n, _ := f.ReadAt(h[:], 0); n < len(h) || string(h[:4]) != "\x7fELF" {
		return false
	}
	word := func(b []byte) uint64 { return uint64(binary.NativeEndian.Uint32(b)) }
	half := func(b []byte) int { return int(binary.NativeEndian.Uint16(b)) }
	// Where a section's offset and size are in its header; both are addresses.
	var at, sizeOf, number, names, offsetAt, sizeAt = 0x28, 64, 0x3c, 0x3e, 0x18, 0x20
	if h[4] == 1 { // 32 bits
		at, sizeOf, number, names, offsetAt, sizeAt = 0x20, 40, 0x30, 0x32, 0x10, 0x14
	} else {
		word = binary.NativeEndian.Uint64
	}
	n, namesIndex := half(h[number:]), half(h[names:])
	if n == 0 || n > maxSections || namesIndex >= n || half(h[number-2:]) != sizeOf {
		return false
	}
	table := make([]byte, n*sizeOf)
	if m, _ := f.ReadAt(table, int64(word(h[at:]))); m < len(table) {
		return false
	}
	section := func(i int) (name uint32, offset, size uint64) {
		b := table[i*sizeOf:]
		return binary.NativeEndian.Uint32(b), word(b[offsetAt:]), word(b[sizeAt:])
	}
	_, offset, size := section(namesIndex)
	if size > maxSectionNames {
		return false
	}
	text := make([]byte, size)
	if m, _ := f.ReadAt(text, int64(offset)); m < len(text) {
		return false
	}
	for i := range n {
		name, offset, _ := section(i)
		if uint64(name) >= size || !bytes.HasPrefix(text[name:], []byte(buildInfo)) {
			continue
		}
		var magic [len(buildInfoMagic)]byte
		m, _ := f.ReadAt(magic[:], int64(offset))
		return string(magic[:m]) == buildInfoMagic
	}
	return false
}

// maxMaps bounds how much of a process's list of mapped files is read.
const maxMaps = 1 << 20

// mapsFile reports whether a process has mapped a file with the given name, such as a library.
func mapsFile(pid int, name string) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxMaps))
	return bytes.Contains(text, []byte("/"+name+"\n"))
}

// runsPython reports whether the executable of a process is named like an interpreter of Python: python, python3,
// python3.13t.
func runsPython(pid int) bool {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil && isPython(path)
}

func isPython(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	version, ok := strings.CutPrefix(strings.TrimSuffix(name, " (deleted)"), "python")
	return ok && strings.Trim(strings.TrimRight(version, "dmt"), ".0123456789") == ""
}

// An Executable identifies the file that a process runs.
type Executable struct{ dev, ino uint64 }

// Executable returns the file that a process runs, or the zero Executable if it is unknown.
func (r *Reader) Executable(pid int) (e Executable) {
	_ = r.ask("Executable", pid, func() {
		if info, err := statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/exe"); err == nil {
			e = Executable{unix.Mkdev(info.Dev_major, info.Dev_minor), info.Ino}
		}
	})
	return e
}
