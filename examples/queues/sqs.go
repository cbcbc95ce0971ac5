package queues

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// An sqsClient is the part of *sqs.Client that is needed.
type sqsClient interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
}

// workSQS receives a message and works on it, for 12 h at most. It does nothing if no message comes within d/6.
func workSQS(ctx context.Context, client sqsClient, queue string, d time.Duration, limits timeout.Config, work func(context.Context, types.Message) error) error {
	d = max(d.Truncate(time.Second), time.Second) // SQS has whole seconds
	asked, seconds := time.Now(), func(d time.Duration) int32 { return int32(d / time.Second) }
	got, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: 1, VisibilityTimeout: seconds(d), WaitTimeSeconds: seconds(min(d/6, 20*time.Second))})
	if err != nil || len(got.Messages) == 0 {
		return err
	}
	msg := got.Messages[0]
	hide := func(ctx context.Context, d time.Duration) error {
		_, err := client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: &queue, ReceiptHandle: msg.ReceiptHandle, VisibilityTimeout: seconds(d)})
		if visible := (*types.MessageNotInflight)(nil); errors.As(err, &visible) {
			return fmt.Errorf("%w: %w", lease.ErrLost, err)
		}
		return err
	}
	return lease.Run(ctx, lease.Lease{
		Duration: d, Since: asked,
		Renew: func(ctx context.Context, _ lease.Checkpoint) error { return hide(ctx, d) },
		Release: func(ctx context.Context, s lease.Checkpoint) error {
			if s.Err == nil { // a deletion may be repeated: the work is done, whoever has the message
				_, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: msg.ReceiptHandle})
				return err
			}
			if err := hide(ctx, 0); err != nil { // the request may have arrived, and another worker may have the message
				return fmt.Errorf("%w: %w", lease.ErrLost, err)
			}
			return nil
		},
	}, func(ctx context.Context) error { return work(ctx, msg) }, limits)
}
