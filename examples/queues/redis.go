package queues

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// takeRedis takes a message whose lease has ended, or a new message. The token is the number of its deliveries.
var takeRedis = redis.NewScript(`
	local late = redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', 1)[1]
	local msg
	if late then
		msg = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, late[1])[1]
	else
		local new = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', KEYS[1], '>')
		msg = new and new[1][2][1]
	end
	return msg and {msg[1], msg[2], late and late[4] + 1 or 1, redis.call('HGET', KEYS[2], msg[1])}`)

// writeRedis writes what only the holder of a message may. XCLAIM JUSTID sets for how long the message has been idle.
var writeRedis = redis.NewScript(`
	local p = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
	if not p and ARGV[6] == 'done' then return 1 end -- an earlier request, whose answer was lost
	if not p or p[2] ~= ARGV[3] or p[4] ~= tonumber(ARGV[4]) then return 0 end
	if ARGV[6] == 'done' then
		redis.call('HDEL', KEYS[2], ARGV[2])
		return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
	end
	if ARGV[5] ~= '' then redis.call('HSET', KEYS[2], ARGV[2], ARGV[5]) end
	redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[2], 'IDLE', ARGV[6], 'JUSTID')
	return 1`)

type entry struct {
	ID     string
	Values []any           // each name is followed by its value
	Detail json.RawMessage // what the attempt before has left
}

// workRedis takes a message of a stream and works on it. No other worker may have the same name. It returns redis.Nil
// if there is no message.
func workRedis(ctx context.Context, db redis.UniversalClient, stream, group, name string, d time.Duration, limits timeout.Config, work func(context.Context, entry) error) error {
	asked, keys := time.Now(), []string{stream, stream + ":details"}
	got, err := takeRedis.Run(ctx, db, keys, group, name, d.Milliseconds()).Slice()
	if err != nil {
		return err
	}
	before, _ := got[3].(string)
	msg := entry{got[0].(string), got[1].([]any), json.RawMessage(cmp.Or(before, "null"))}
	write := func(ctx context.Context, s lease.Checkpoint, idle any) error {
		detail, _ := json.Marshal(s.Detail) // empty if it cannot be encoded, which is no reason to lose the lease
		n, err := writeRedis.Run(ctx, db, keys, group, msg.ID, name, s.Token, detail, idle).Int()
		if err == nil && n == 0 {
			return lease.ErrLost
		}
		return err
	}
	return lease.Run(ctx, lease.Lease{
		Duration: d, Since: asked, Token: got[2], Detail: msg.Detail,
		Renew: func(ctx context.Context, s lease.Checkpoint) error { return write(ctx, s, 0) },
		Release: func(ctx context.Context, s lease.Checkpoint) error {
			if s.Err != nil {
				return write(ctx, s, d.Milliseconds()) // idle for as long as a lease: whoever asks may have it
			}
			return write(ctx, s, "done")
		},
	}, func(ctx context.Context) error { return work(ctx, msg) }, limits)
}
