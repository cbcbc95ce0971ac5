package work

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A spent holds how much a process has used since it began.
type spent struct {
	parent   int
	own      time.Duration
	children time.Duration // used by the children that it has waited for
	bytes    uint64        // own and children's
	faults   uint64        // own and children's
	old      bool          // bytes is the figure of the last look
	at       time.Time
	waited   time.Duration // for a processor
	running  bool          // the process is running, ready to run, or waiting for a disk
}

// growth returns the usage from one look to the next. What an ended process had used at the last look has been
// counted, and is now part of the figures of the parent that has waited for it, from which growth subtracts it.
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
		for steps := 0; ok && steps < len(before); steps++ { // the parent may have ended too, and reused ids form a cycle
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
		case s.old: // the next figure that is read includes the bytes of ended children, which have been counted
			s.bytes = known
			now[key] = s
		case s.bytes > known:
			used.IO += s.bytes - known
		}
	}
	return used
}

// starved returns the part of the time since the last look in which the member that was worst off waited for a
// processor. A member that is new has waited since that look at most.
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

func share(part, of time.Duration) float64 {
	if part <= 0 || of <= 0 {
		return 0
	}
	return min(float64(part)/float64(of), 1)
}

// faultCost returns how long a page fault takes on this machine, and 0 if it cannot be measured. Starting a program
// is a few hundred faults, so where they are slow, as in some virtual machines, it takes several times as long.
var faultCost = sync.OnceValue(func() time.Duration {
	const batches, pages = 9, 8
	size := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, batches*pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(memory) }()
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE) // not every kernel has huge pages
	least := time.Duration(math.MaxInt64)          // of a batch: in others this thread may have got no processor
	for batch := range slices.Chunk(memory, pages*size) {
		begun := time.Now()
		for page := 0; page < len(batch); page += size {
			batch[page] = 1
		}
		least = min(least, time.Since(begun))
	}
	return least / pages
})
