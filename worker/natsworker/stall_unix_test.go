//go:build unix

package natsworker_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Guarantee 2: a server that does nothing for a while, as one whose disk is blocked, keeps its
// connections, and its AckWait runs. For whatever time it does, no two functions are at work on a
// message, and each message is done. STALLS=100 makes it the long run, STALL_SEED repeats the
// stalls.
func TestStalledServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	const ackWait = 13 * time.Second // a busy machine must not take the sixth in which a function stops
	stalls, seed := 3, uint64(time.Now().UnixNano())
	if s := os.Getenv("STALLS"); s != "" {
		stalls, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("STALL_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("STALL_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	k := newKillable(t, ackWait)
	logger := slog.New(slog.NewTextHandler(t.Output(), nil)) // seen where the test fails
	var mu sync.Mutex
	working := map[uint64]uint64{} // delivery by message
	var done, lost atomic.Int32
	for w := range 3 {
		conn := natsworker.WithConn
		if w == 0 {
			conn = func(*nats.Conn) natsworker.Option { return nil }
		}
		k.run(k.url(), 4, func(ctx context.Context, m jetstream.Msg) error {
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			of, n := meta.Sequence.Stream, meta.NumDelivered
			mu.Lock()
			if other := working[of]; other != 0 {
				t.Errorf("message %d: delivery %d begins beside delivery %d", of, n, other)
			}
			working[of] = n
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				delete(working, of)
			}()
			select {
			case <-ctx.Done():
				lost.Add(1)
				return ctx.Err()
			case <-time.After(rand.N(ackWait * 3 / 2)):
				done.Add(1)
				return nil
			}
		}, conn, noLimits, natsworker.WithLogger(logger))
	}
	publishing, stop := context.WithCancel(t.Context())
	var publisher sync.WaitGroup
	defer publisher.Wait()
	defer stop()
	publisher.Go(func() {
		for n := 0; publishing.Err() == nil; {
			ctx, cancel := context.WithTimeout(publishing, 2*ackWait)
			if _, err := k.js.Publish(ctx, "jobs.x", nil, jetstream.WithMsgID(fmt.Sprint(n))); err == nil {
				n++
			}
			cancel()
			time.Sleep(200 * time.Millisecond)
		}
	})
	for range stalls {
		time.Sleep(time.Duration(random.Int64N(int64(ackWait / 2))))
		k.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(time.Duration(random.Int64N(int64(ackWait * 4 / 3))))
		k.cmd.Process.Signal(syscall.SIGCONT)
	}
	stop()
	publisher.Wait()
	k.empty()
	t.Logf("%d functions done, %d stopped", done.Load(), lost.Load())
}
