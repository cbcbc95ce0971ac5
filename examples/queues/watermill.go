package queues

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func limitWatermill(limits timeout.Config, updates message.Publisher) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			return timeout.Do(msg.Context(), func(ctx context.Context) ([]*message.Message, error) {
				defer heartbeat.Relay(ctx, 10*time.Second, func(ctx context.Context, detail any) {
					if detail == nil {
						return
					}
					text, err := json.Marshal(detail)
					if err == nil {
						err = updates.Publish("progress", message.NewMessage(msg.UUID, text))
					}
					if err != nil {
						slog.WarnContext(ctx, "progress was not published", "message", msg.UUID, "err", err)
					}
				})()
				// A copy, since an abandoned handler may still use it when the original is redelivered.
				mine := msg.Copy()
				mine.SetContext(ctx)
				return next(mine)
			}, limits, timeout.WithName(message.HandlerNameFromCtx(msg.Context())))
		}
	}
}
