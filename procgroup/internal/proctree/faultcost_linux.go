package proctree

import (
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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
