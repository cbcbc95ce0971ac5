package queues

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func limitRiver(limits timeout.Config) river.WorkerMiddlewareFunc {
	return func(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) error {
		return timeout.Run(ctx, func(ctx context.Context) error {
			defer heartbeat.Relay(ctx, 10*time.Second, func(ctx context.Context, detail any) {
				if detail == nil {
					return // the detail of the attempt before stays
				}
				if _, err := river.ClientFromContext[pgx.Tx](ctx).JobUpdate(ctx, job.ID, &river.JobUpdateParams{Output: detail}); err != nil {
					slog.WarnContext(ctx, "progress was not stored", "job", job.ID, "err", err)
				}
			})()
			return work(ctx)
		}, limits, timeout.WithName(job.Kind))
	}
}
