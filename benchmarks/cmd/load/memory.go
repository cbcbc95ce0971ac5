package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// memory is what n executions hold while they beat, heap and stacks, and how many
// goroutines. For bare it is the function's goroutine and that of its caller, who
// waits on a channel.
func memory(s scene) ([]metric, error) {
	// The heap is measured by the difference, so the collector must be through with
	// what went before.
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
	runtime.GC() // the first one's sweep
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}
