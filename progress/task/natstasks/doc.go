// Package natstasks keeps tasks in NATS JetStream, so that any replica of a server can answer
// for a task of any other.
//
//	store, err := natstasks.Open(ctx, js, natstasks.Options{})
//	tasks := &task.Tasks{Store: store}
//	...
//	tasks.Close() // aborts the running calls and stores their outcomes
//	store.Close()
//
// A replica is a process that has opened the store. It runs the tools of the tasks that were
// created through it, and shares only their records. A client may get, list, cancel and answer
// a task through any replica; the replica that runs the tool learns of changes from a watch.
//
// # Storage
//
// A store has two buckets and an object store. The first replica that needs one of them creates it,
// with its settings; later replicas use what exists.
//
//   - The key-value bucket (mcp-tasks unless the [Options] name another) has a record per task, by the
//     hash of its owner, the replica and the id. Each change is a compare-and-set. A final record
//     expires at the end of its retention, in whole seconds.
//   - The bucket with the suffix "-leases" has a key per replica, which expires unless it is renewed.
//   - The object store with the suffix "-results" has the results above 256 KiB, up to 16 MiB. They expire when their
//     task does or later, by the age limit of the object store.
//
// A NATS user with read access to these streams can read every task. The server must be 2.11 or newer.
// [Open] refuses an existing bucket whose settings would lose tasks.
//
// # Replicas that are gone
//
// A replica renews its lease by a timer, three times per lease, even if a tool is stuck, which only the
// limits of the tool detect. When the lease has expired, or [Store.Close] has given it up, the other
// replicas mark the unfinished tasks of that replica as failed, even if no client requests them. When a
// replica that was only suspended runs again, its tools are aborted, with [task.ErrLost] as the cause, and
// their results are dropped.
//
// # Outages
//
// While NATS cannot be reached, tools run on, and a replica tries again to store an outcome until it
// succeeds. A replica marks tasks of another as failed only after it has renewed its own lease without a
// failure for as long as a lease lasts, so that the others have time to reconnect after an outage. The connection of
// a replica should reconnect for ever (nats.MaxReconnects(-1)) and soon (nats.ReconnectWait far below
// the lease): a replica that stays away for longer than the lease, while others are connected, counts
// as gone.
//
// # Clocks
//
// Leases, and the removal of expired records, follow the clock of the servers. The replica that ran a
// task stores the time at which its result expires, and all replicas compare it with their own clocks: for a
// replica whose clock is ahead, the result expires earlier by the difference.
//
// # Guarantees
//
//  1. A record is stored on as many servers as Options.Replicas says before a method returns it.
//  2. A final status never changes, even if several replicas write one at the same time.
//  3. Reads are answered by the leader of the stream, so a replica reads what any other has stored
//     before.
//  4. Owners have different keys, and no id of a client leads to another's.
//  5. A task whose replica is gone has failed when the lease has ended, for replicas that have been
//     connected for as long.
//  6. An outage of NATS that is shorter than the retention loses no task, if the servers keep their
//     files.
//  7. When every task has expired, the bucket of tasks is empty, unless a server was killed: such a
//     server can bring back an earlier record of a task that has expired.
//  8. [Store.Close] leaves no goroutine, and no connection of its own, because it makes none.
package natstasks
