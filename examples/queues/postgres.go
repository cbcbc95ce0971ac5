package queues

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
)

// jobsTable has a row for each job. Whoever has its token may write it.
const jobsTable = `create table jobs (id bigserial primary key, args jsonb, detail jsonb, token bigint not null default 0,
	leased_until timestamptz not null default now(), done boolean not null default false);
	create index on jobs (leased_until) where not done`

type row struct {
	ID, Token    int64
	Args, Detail json.RawMessage // Detail is what the attempt before has left
}

// workPostgres takes a job and works on it. It returns pgx.ErrNoRows if there is no job.
func workPostgres(ctx context.Context, db *pgxpool.Pool, d time.Duration, limits timeout.Config, work func(context.Context, row) error) error {
	asked := time.Now()
	rows, _ := db.Query(ctx, `update jobs set token = token + 1, leased_until = now() + $1 where id = (select id from jobs
		where not done and leased_until < now() order by leased_until limit 1 for update skip locked)
		returning id, token, args, detail`, d)
	job, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	if err != nil {
		return err
	}
	write := func(ctx context.Context, s lease.Checkpoint, left time.Duration, done bool) error {
		detail, _ := json.Marshal(s.Detail) // nil if it cannot be encoded, which is no reason to lose the lease
		tag, err := db.Exec(ctx, `update jobs set leased_until = now() + $3, detail = coalesce($4, detail), done = done or $5 where id = $1 and token = $2`,
			job.ID, s.Token, left, detail, done)
		if err == nil && tag.RowsAffected() == 0 {
			return lease.ErrLost
		}
		return err
	}
	return lease.Run(ctx, lease.Lease{
		Duration: d, Since: asked, Token: job.Token, Detail: job.Detail,
		Renew:   func(ctx context.Context, s lease.Checkpoint) error { return write(ctx, s, d, false) },
		Release: func(ctx context.Context, s lease.Checkpoint) error { return write(ctx, s, time.Second, s.Err == nil) },
	}, func(ctx context.Context) error { return work(ctx, job) }, limits)
}
