package queues

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func limitAsynq(limits timeout.Config) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				heartbeat.Relay(ctx, 10*time.Second, func(ctx context.Context, e heartbeat.Event) {
					if err := json.NewEncoder(task.ResultWriter()).Encode(e.Detail); err != nil {
						slog.WarnContext(ctx, "progress was not stored", "task", task.Type(), "err", err)
					}
				})
				return next.ProcessTask(ctx, task)
			}, limits, timeout.WithName(task.Type()))
		})
	}
}
