package procfs

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// Memory reads the memory of a process at the address at, and reports whether it has filled buf. It waits for the file
// system if the memory maps a file.
func (r *Reader) Memory(pid int, at uint64, buf []byte) (ok bool) {
	if len(buf) == 0 {
		return true
	}
	_ = r.ask("Memory", pid, func() {
		local := []unix.Iovec{{Base: &buf[0]}}
		local[0].SetLen(len(buf))
		n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(buf)}}, 0)
		ok = err == nil && n == len(buf)
	})
	return ok
}

// A PollFD is an entry of the array of poll(2).
type PollFD struct {
	FD     int32
	Events int16
	_      int16
}

// maxPolled bounds the descriptors that Polled and Selected accept.
const maxPolled = 1024

// Polled reads the array of n entries that a process has passed to poll(2), at the address at in its memory. ok is
// false if that fails, or n exceeds maxPolled.
func (r *Reader) Polled(pid int, at, n uint64) (all []PollFD, ok bool) {
	if n > maxPolled {
		return nil, false
	}
	all = make([]PollFD, n)
	buf := make([]byte, binary.Size(all))
	if !r.Memory(pid, at, buf) {
		return nil, false
	}
	_, err := binary.Decode(buf, binary.NativeEndian, all)
	return all, err == nil
}

// Selected returns the descriptors below n in a set that a process has passed to select(2), at the address at in its
// memory. The set at address 0 is empty. ok is false if the set cannot be read, or n exceeds maxPolled.
func (r *Reader) Selected(pid int, at, n uint64) (all []int, ok bool) {
	if at == 0 || n == 0 {
		return nil, true
	}
	if n > maxPolled {
		return nil, false
	}
	buf := make([]byte, (n+63)/64*8)
	if !r.Memory(pid, at, buf) {
		return nil, false
	}
	for fd := range int(n) {
		if binary.NativeEndian.Uint64(buf[fd/64*8:])&(1<<(fd%64)) != 0 {
			all = append(all, fd)
		}
	}
	return all, true
}

// A Target is a descriptor that an epoll instance watches.
type Target struct {
	FD     int
	Events uint32
	Inode  uint64 // 0 if the kernel does not show it
}

// Targets returns the descriptors that an epoll instance of a process watches. epoll is the descriptor of the instance.
// ok is false if they cannot be read.
func (r *Reader) Targets(pid, epoll int) (all []Target, ok bool) {
	_ = r.ask("Targets", pid, func() {
		text, err := r.read(pid, "/fdinfo/"+strconv.Itoa(epoll), make([]byte, 4<<10), true)
		if ok = err == nil; ok {
			all = parseTargets(text)
		}
	})
	return all, ok
}

func parseTargets(text []byte) (all []Target) {
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 4 || string(words[0]) != "tfd:" || string(words[2]) != "events:" {
			continue
		}
		events, err := strconv.ParseUint(string(words[3]), 16, 32)
		if err != nil {
			continue
		}
		t := Target{FD: int(Uint(words[1])), Events: uint32(events)}
		for _, word := range words[4:] {
			if hex, found := bytes.CutPrefix(word, []byte("ino:")); found {
				t.Inode, _ = strconv.ParseUint(string(hex), 16, 64)
			}
		}
		all = append(all, t)
	}
	return all
}
