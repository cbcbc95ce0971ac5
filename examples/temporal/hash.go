package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// A report is the workflow's result.
type report struct {
	Lines   []string // hash and name of each file
	Stopped string   // why there are no more lines, or ""
}

// hashTree is the workflow. If the activity is stopped, its report has the partial result.
func hashTree(ctx workflow.Context, dir string) (r report, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    10 * time.Second, // a killed worker is noticed within this time
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 3},
	})
	err = workflow.ExecuteActivity(ctx, (*hasher).HashTree, dir).Get(ctx, &r.Lines)
	if o, ok := temporalworker.OutcomeOf(err); ok {
		r.Stopped = o.Kind
		return r, o.Partial(&r.Lines)
	}
	return r, err
}

type hasher struct {
	hang  string // the name of a file
	hangs int    // number of attempts that hang
	files atomic.Int64
}

// HashTree is the activity. It does not know the limits: it records what it has done, and stops
// when its context ends.
func (h *hasher) HashTree(ctx context.Context, dir string) ([]string, error) {
	var lines []string
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &lines); err != nil {
			return nil, err
		}
	}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if n++; n <= len(lines) {
			return nil // an earlier attempt has hashed it: the order is always the same
		}
		if d.Name() == h.hang && int(activity.GetInfo(ctx).Attempt) <= h.hangs {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		sum, err := h.hashFile(ctx, path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		lines = append(lines, sum+"  "+filepath.ToSlash(name))
		activity.RecordHeartbeat(ctx, lines)
		return nil
	})
	return lines, err
}

// hashFile beats while it reads a large file.
func (h *hasher) hashFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, heartbeat.Reader(ctx, f)); err != nil {
		return "", err
	}
	h.files.Add(1)
	return fmt.Sprintf("%x", sum.Sum(nil)), ctx.Err()
}
