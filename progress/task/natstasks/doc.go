// Package natstasks keeps tasks in NATS JetStream, so that any replica of a server can answer
// for a task of any other.
//
//	store, err := natstasks.Open(ctx, js)
//	tasks := task.New(task.WithStore(store))
//	...
//	tasks.Close() // aborts what runs and stores the outcomes
//	store.Close()
//
// A replica is a process that has opened the store. It runs the tools of the tasks that were
// created through it, and only their records are shared. A client may get, list, cancel and answer
// a task through any replica; the one that runs the tool learns of it by a watch.
//
// # What is kept where
//
// All three are made by the first replica that needs them; the settings are those of that moment,
// and later replicas use what is there.
//
//   - The key-value bucket (mcp-tasks unless [WithBucket] names another) has a record per task, by the
//     hash of its owner, the replica and the id. Each change is a compare-and-set. A record that is
//     final expires at the end of its retention, in whole seconds.
//   - The bucket with "-leases" has a key per replica, which expires when it is not renewed.
//   - The object store with "-results" has the results above 256 KiB. Those expire with their task, or
//     at most a lease and the time of their storing later.
//
// Who may read these streams can read every task. The server must be 2.11 or newer. A bucket that was
// made beforehand, with other settings, is refused by [Open] where they would lose tasks.
//
// # Replicas that are gone
//
// A replica renews its lease by a timer, three times as often as it would expire, whatever its tools
// do: whether a tool is stuck is for its limits to judge. When the lease has expired, or [Store.Close]
// has given it up, the other replicas make the unfinished tasks of that replica failed, whether somebody
// asks for them or not. A replica that was only suspended learns of that when it wakes: its tools
// are aborted, with [task.ErrLost] as the cause, and what they return is dropped.
//
// # Outages
//
// While NATS cannot be reached, tools run on, and an outcome is tried again until it is stored. A
// replica judges another only after it has itself renewed its lease without a failure for as long
// as a lease lasts, so that the others have time to come back after an outage. Let the connection
// of a replica reconnect for ever (nats.MaxReconnects(-1)) and soon (nats.ReconnectWait far below
// the lease): one that stays away for longer than the lease while others are connected is taken for
// gone.
//
// # Clocks
//
// Leases and the removal of what has expired go by the servers' clock. But when a result expires is
// written by the replica that ran the task, and read by all: one whose clock is ahead takes it for
// expired by so much earlier.
//
// # Guarantees
//
//  1. A record is stored on as many servers as [WithReplicas] says before a method returns it.
//  2. A final status never changes, whoever competes for it.
//  3. Reads are answered by the leader: what one replica has stored, every other reads.
//  4. Owners have different keys, and no id of a client leads to another's.
//  5. A task whose replica is gone is failed when the lease has ended, for those replicas that have
//     been connected for as long.
//  6. An outage of NATS that is shorter than the retention loses no task, if the servers keep their files.
//  7. When every task has expired, the bucket of tasks is empty.
//  8. [Store.Close] leaves no goroutine, and no connection of its own, since it makes none.
package natstasks
