package main

import (
	"context"
	"sync"
	"time"
)

// processor is the share of one processor that n beating executions take, over a
// window as long as the library's timer needs from one look to the next: idle less
// half of a beat's interval. A shorter one could miss them all. The window begins
// before the first look. What bare takes is the load; the rest is the watching.
func processor(s scene) ([]metric, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	wg.Add(s.n)
	for i := range s.n {
		first := s.beat * time.Duration(i) / time.Duration(s.n)
		s.start(ctx, beating(first, s.beat), wg.Done)
	}
	time.Sleep(s.beat)

	begin := time.Now()
	used0, err := cpuTime()
	if err != nil {
		return nil, err
	}
	time.Sleep(s.idle - s.beat/2)
	used, err := cpuTime()
	if err != nil {
		return nil, err
	}
	share := 100 * (used - used0).Seconds() / time.Since(begin).Seconds()
	cancel()
	wg.Wait()
	return []metric{{share, "cpu-%"}}, nil
}
