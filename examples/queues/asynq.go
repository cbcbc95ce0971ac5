package queues

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func limitAsynq(limits timeout.Config, db redis.UniversalClient) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			limits := limits
			if deadline, ok := ctx.Deadline(); ok { // where asynq gives the task up, and knows no reason
				left := time.Until(deadline)
				if left -= left / 10; limits.Total == 0 || left < limits.Total {
					limits.Total = left
				}
			}
			id, _ := asynq.GetTaskID(ctx)
			return timeout.Run(ctx, func(ctx context.Context) error {
				defer heartbeat.Relay(ctx, 10*time.Second, func(ctx context.Context, detail any) {
					if detail == nil {
						return // the detail of the attempt before stays
					}
					text, err := json.Marshal(detail)
					if err == nil {
						err = db.Set(ctx, "progress:"+id, text, 24*time.Hour).Err()
					}
					if err != nil {
						slog.WarnContext(ctx, "progress was not stored", "task", id, "err", err)
					}
				})()
				return next.ProcessTask(ctx, task)
			}, limits, timeout.WithName(task.Type()))
		})
	}
}
