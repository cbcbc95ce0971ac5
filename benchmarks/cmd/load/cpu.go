package main

import (
	"context"
	"sync"
	"time"
)

// processor measures the processor time of n executions that beat, as a percentage of one processor. The duration of
// the measurement is the interval between two checks of the library's timer: idle less half the interval of the beats.
// A shorter measurement might contain no check. It begins before the first check. The value of bare is the cost of the
// beats alone.
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
