package work

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A spent has what a process has used since it began.
type spent struct {
	parent   int           // process id
	own      time.Duration // processor time of the process
	children time.Duration // processor time of the children that the process has waited for
	bytes    uint64        // of the process and of these children
	faults   uint64        // of the process and of these children
	old      bool          // bytes could not be read, and is that of the last look
	at       time.Time     // when waited was read
	waited   time.Duration // total time for which the process was ready to run but got no processor
	running  bool          // the process is running, ready to run, or waiting for a disk
}

// growth returns the usage from one look to the next. The figures of a process that has ended in between are now part
// of those of the parent that has waited for it. What they were at the first look has been counted before, so growth
// subtracts it. It updates the bytes in now that are old.
func growth(before, now map[procfs.Key]spent) (used Usage) {
	owed := make(map[procfs.Key]spent)
	var byID map[int]procfs.Key
	for key, s := range before {
		if _, there := now[key]; there {
			continue
		}
		if byID == nil {
			byID = make(map[int]procfs.Key, len(before))
			for k := range before {
				byID[k.PID] = k
			}
		}
		heir, ok := byID[s.parent]
		for steps := 0; ok && steps < len(before); steps++ { // the parent may have ended too; reused ids may form a cycle
			if _, there := now[heir]; there {
				o := owed[heir]
				o.children += s.own + s.children
				o.bytes += s.bytes
				o.faults += s.faults
				owed[heir] = o
				break
			}
			heir, ok = byID[before[heir].parent]
		}
	}
	for key, s := range now {
		b, o := before[key], owed[key]
		used.CPU += max(s.own-b.own, 0) + max(s.children-b.children-o.children, 0)
		used.Faults += s.faults - min(s.faults, b.faults+o.faults)
		switch known := b.bytes + o.bytes; {
		case s.old: // the next figure that can be read includes the bytes of ended children, already counted
			s.bytes = known
			now[key] = s
		case s.bytes > known:
			used.IO += s.bytes - known
		}
	}
	return used
}

// starved returns, for the member with the largest part, the part of the time since the last look in which it was ready
// to run but got no processor. looked is the time of that look; a new member has waited since then at most.
func starved(before, now map[procfs.Key]spent, looked time.Time) (part float64) {
	for key, s := range now {
		since, waited := looked, s.waited
		if b, ok := before[key]; ok {
			since, waited = b.at, s.waited-b.waited
		}
		part = max(part, share(waited, s.at.Sub(since)))
	}
	return part
}

// share returns part/of, at most 1, or 0 if either is not positive.
func share(part, of time.Duration) float64 {
	if part <= 0 || of <= 0 {
		return 0
	}
	return min(float64(part)/float64(of), 1)
}

// faultCost returns the time that a page fault takes on this machine, or 0 if it cannot be measured. It measures once.
// The start of a program causes a few hundred faults, and takes several times as long where they are slow, as in some
// virtual machines.
var faultCost = sync.OnceValue(func() time.Duration {
	const batches, pages = 9, 8
	size := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, batches*pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(memory) }()
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE) // not every kernel has huge pages
	least := time.Duration(math.MaxInt64)          // of the fastest batch, which did not wait for a processor
	for batch := range slices.Chunk(memory, pages*size) {
		begun := time.Now()
		for page := 0; page < len(batch); page += size {
			batch[page] = 1
		}
		least = min(least, time.Since(begun))
	}
	return least / pages
})
