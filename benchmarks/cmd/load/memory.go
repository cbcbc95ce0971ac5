package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// memory measures the heap, the stacks and the goroutines of n executions that beat. With bare, an execution has two
// goroutines: one runs the function, and the other is its caller, which waits on a channel.
func memory(s scene) ([]metric, error) {
	// The heap is measured as a difference, so earlier garbage has to be collected first.
	heap0, stack0 := held()
	goroutines0 := runtime.NumGoroutine()

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(s.n)
	const settle = 2 * time.Second
	for i := range s.n {
		first := settle / 2 * time.Duration(i) / time.Duration(s.n)
		s.start(ctx, beating(first, s.beat), wg.Done)
	}
	time.Sleep(settle)
	goroutines := runtime.NumGoroutine() - goroutines0
	heap, stack := held()
	cancel()
	wg.Wait()

	n := float64(s.n)
	return []metric{
		{(heap - heap0 + stack - stack0) / n, "B/run"},
		{(heap - heap0) / n, "heap-B/run"},
		{(stack - stack0) / n, "stack-B/run"},
		{float64(goroutines) / n, "goroutines/run"},
	}, nil
}

func held() (heap, stack float64) {
	runtime.GC()
	runtime.GC() // completes the sweep of the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}
