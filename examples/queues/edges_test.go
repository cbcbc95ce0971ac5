package queues

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 13.4: a worker with a shorter duration waits for as long as the holder relies on its own, as while a new version is
// rolled out. A holder without a time of renewal holds nothing.
func TestKubernetesDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begun := &fakeLease{}, time.Now()
		holder := "kubectl"
		f.Spec.HolderIdentity = &holder
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = workKubernetes(t.Context(), leaseObject{f, &outage{begun.Add(1), begun.Add(time.Hour)}}, "leader", "A", time.Minute, timeout.Config{Grace: grace},
				func(ctx context.Context, _ json.RawMessage) error { <-ctx.Done(); return nil })
		}()
		for taken := false; !taken; {
			time.Sleep(time.Second)
			_ = workKubernetes(t.Context(), leaseObject{f, nil}, "leader", "B", 15*time.Second, timeout.Config{Grace: grace}, func(context.Context, json.RawMessage) error {
				taken = true
				return nil
			})
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("B begins after %v", took)
		}
		<-ended
	})
}

// SPEC 13.4: the function is told before the message comes again, also if the duration is not in whole seconds.
func TestSQSFractions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, begun := &fakeQueue{}, time.Now()
		_ = workSQS(t.Context(), queueClient{q, &outage{begun, begun.Add(time.Hour)}}, "queue", 3900*time.Millisecond, timeout.Config{Grace: -1}, func(ctx context.Context, _ types.Message) error {
			<-ctx.Done()
			if now := time.Now(); !now.Before(q.visible) {
				t.Errorf("told after %v, and visible after %v", now.Sub(begun), q.visible.Sub(begun))
			}
			return nil
		})
	})
}
