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

// A Program is a kind of program that writes the stacks of its threads when it receives a certain signal.
type Program int

const (
	OtherProgram  Program = iota // a program that writes no stacks, or that is not recognized
	GoProgram                    // ends after SIGQUIT
	JavaProgram                  // goes on after SIGQUIT
	PythonProgram                // ends after SIGABRT
)

// Program returns the kind of program that p runs, or OtherProgram if p cannot be read. It also returns OtherProgram if
// p has no handler for the signal of its kind, as a JVM with -Xrs or Python without its fault handler: the signal would
// just end p. Program may block: see Gather.
func (r *Reader) Program(p *Process) (kind Program) {
	var buf [4 << 10]byte
	status, err := r.beginning("Program", p.PID, "/status", buf[:])
	handled := handledSignals(status)
	if err != nil || handled&(signalBit(unix.SIGQUIT)|signalBit(unix.SIGABRT)) == 0 {
		return OtherProgram
	}
	_ = r.ask("Program", p.PID, func() { // the file system of the executable may not answer
		switch {
		case handled&signalBit(unix.SIGQUIT) != 0 && runsGo(p.PID):
			kind = GoProgram
		case handled&signalBit(unix.SIGQUIT) != 0 && mapsFile(p.PID, "libjvm.so"):
			kind = JavaProgram
		case handled&faultSignals == faultSignals && runsPython(p.PID):
			kind = PythonProgram
		}
	})
	// Other handlers may handle the same signals as the fault handler, such as a crash reporter in an extension, or a
	// function in Python that removes files. So the environment must enable the fault handler as well. This is wrong only
	// for a program that ignores the environment, as python -I, or that has replaced the fault handler.
	if kind == PythonProgram {
		env, err := r.Environ(p)
		if values := Values(env, "PYTHONFAULTHANDLER"); err != nil || len(values) == 0 || values[0] == "" {
			return OtherProgram
		}
	}
	return kind
}

// faultSignals has the bits of the signals that Python's fault handler handles; see signalBit.
var faultSignals = signalBit(unix.SIGSEGV) | signalBit(unix.SIGFPE) | signalBit(unix.SIGABRT) | signalBit(unix.SIGBUS) | signalBit(unix.SIGILL)

// signalBit returns the bit of sig in the masks of /proc/<pid>/status.
func signalBit(sig unix.Signal) uint64 { return 1 << (sig - 1) }

// handledSignals returns the mask of the signals with handlers. status is the content of /proc/<pid>/status.
func handledSignals(status []byte) uint64 {
	_, line, _ := bytes.Cut(status, []byte("\nSigCgt:\t"))
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	mask, _ := strconv.ParseUint(string(line), 16, 64)
	return mask
}

// runsGo reports whether the executable of a process was built by the Go toolchain. It returns false if the executable
// cannot be opened.
func runsGo(pid int) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return false
	}
	defer f.Close()
	return isGo(f)
}

// isGo looks for a section named buildInfo that begins with buildInfoMagic. It gives up on a file with more than
// maxSections sections, or more than maxSectionNames bytes of section names.
const (
	maxSections     = 512
	maxSectionNames = 64 << 10
	buildInfo       = ".go.buildinfo\x00"
	buildInfoMagic  = "\xff Go buildinf:"
)

// isGo reports whether f, an ELF file for this machine, has the section that the Go linker writes, even into a stripped
// file. It does not use package debug/buildinfo, which is not hardened against malicious files.
func isGo(f io.ReaderAt) bool {
	var h [64]byte
	if n, _ := f.ReadAt(h[:], 0); n < len(h) || string(h[:4]) != "\x7fELF" {
		return false
	}
	word := func(b []byte) uint64 { return uint64(binary.NativeEndian.Uint32(b)) }
	half := func(b []byte) int { return int(binary.NativeEndian.Uint16(b)) }
	// In the ELF header: offsets of the section table's address, of the number of sections, and of the index of the names.
	// In a section header: its size, and the offsets of the section's offset and size.
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

// maxMaps bounds the bytes of /proc/<pid>/maps that mapsFile reads.
const maxMaps = 1 << 20

// mapsFile reports whether a process has mapped a file with the given base name, such as a library, into its memory. It
// searches the first maxMaps bytes of the list of mapped files, and returns false if that cannot be read.
func mapsFile(pid int, name string) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxMaps))
	return bytes.Contains(text, []byte("/"+name+"\n"))
}

// runsPython reports whether the executable of a process has the name of a Python interpreter, such as python, python3
// or python3.13t. It returns false if the name cannot be read.
func runsPython(pid int) bool {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil && isPython(path)
}

func isPython(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	version, ok := strings.CutPrefix(strings.TrimSuffix(name, " (deleted)"), "python")
	return ok && strings.Trim(strings.TrimRight(version, "dmt"), ".0123456789") == ""
}

// An Executable identifies the executable file of a process.
type Executable struct{ dev, ino uint64 }

// Executable returns the identity of a process's executable file, or the zero Executable if it cannot be read.
func (r *Reader) Executable(pid int) (e Executable) {
	_ = r.ask("Executable", pid, func() {
		if info, err := statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/exe"); err == nil {
			e = Executable{unix.Mkdev(info.Dev_major, info.Dev_minor), info.Ino}
		}
	})
	return e
}
