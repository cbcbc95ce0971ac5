package queues

import (
	"context"
	"encoding/json"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// writeRedis writes what only the holder of a message may: it has the newest delivery. XCLAIM JUSTID sets how long the
// message has been idle; 0 renews the lease, and the lease's duration lets go of it.
var writeRedis = redis.NewScript(`
	local p = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
	if not p and ARGV[6] == 'done' then return 1 end -- an earlier request, whose answer was lost
	if not p or p[2] ~= ARGV[3] or p[4] ~= tonumber(ARGV[4]) then return 0 end
	if ARGV[6] == 'done' then
		redis.call('HDEL', KEYS[2], ARGV[2])
		return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
	end
	redis.call('HSET', KEYS[2], ARGV[2], ARGV[5])
	redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[2], 'IDLE', ARGV[6], 'JUSTID')
	return 1`)

// workRedis takes a message of a stream and works on it; detail is what the attempt before has left. The name of the
// worker is its own. It returns redis.Nil if there is no message.
func workRedis(ctx context.Context, db redis.UniversalClient, stream, group, name string, d time.Duration, limits timeout.Config,
	work func(ctx context.Context, msg redis.XMessage, detail json.RawMessage) error) error {
	asked := time.Now()
	msg, token, err := takeRedis(ctx, db, stream, group, name, d)
	if err != nil {
		return err
	}
	before, err := db.HGet(ctx, stream+":details", msg.ID).Bytes()
	if err != nil && err != redis.Nil {
		return err
	}
	write := func(ctx context.Context, s lease.State, idle any) error {
		detail, err := json.Marshal(s.Detail)
		if err != nil {
			return err
		}
		n, err := writeRedis.Run(ctx, db, []string{stream, stream + ":details"}, group, msg.ID, name, s.Token, detail, idle).Int()
		if err == nil && n == 0 {
			return lease.ErrLost
		}
		return err
	}
	return lease.Run(ctx, lease.Lease{
		Duration: d, Since: asked, Token: token, Detail: json.RawMessage(before),
		Renew: func(ctx context.Context, s lease.State) error { return write(ctx, s, 0) },
		Release: func(ctx context.Context, s lease.State) error {
			if s.Err != nil {
				return write(ctx, s, d.Milliseconds())
			}
			return write(ctx, s, "done")
		},
	}, func(ctx context.Context) error { return work(ctx, msg, before) }, limits)
}

// takeRedis takes a message whose lease has ended, or a new one. The token is the number of its deliveries.
func takeRedis(ctx context.Context, db redis.UniversalClient, stream, group, name string, d time.Duration) (redis.XMessage, int64, error) {
	late, err := db.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: stream, Group: group, Idle: d, Start: "-", End: "+", Count: 10}).Result()
	if err != nil {
		return redis.XMessage{}, 0, err
	}
	for _, p := range late {
		msgs, err := db.XClaim(ctx, &redis.XClaimArgs{Stream: stream, Group: group, Consumer: name, MinIdle: d, Messages: []string{p.ID}}).Result()
		if err != nil || len(msgs) > 0 {
			return append(msgs, redis.XMessage{})[0], p.RetryCount + 1, err
		}
	}
	got, err := db.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: name, Streams: []string{stream, ">"}, Count: 1, Block: time.Second}).Result()
	if err != nil {
		return redis.XMessage{}, 0, err
	}
	return got[0].Messages[0], 1, nil
}
