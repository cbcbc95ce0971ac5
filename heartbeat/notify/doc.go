// Package notify reports to the supervisor of this process that its work goes on. The supervisor may be systemd with
// WatchdogSec=, procgroup.Notify, or "deadline --notify".
//
//	func main() {
//		defer notify.Watch()()
//		serve()
//	}
//
// The package finds the supervisor in the environment: NOTIFY_SOCKET is the address on which it listens, and
// WATCHDOG_USEC the time within which it expects a message. Without NOTIFY_SOCKET, Watch and Relay do nothing, and
// [Send] returns [ErrNoSupervisor]; without WATCHDOG_USEC, Watch does nothing. The protocol is that of sd_notify(3).
//
// [Watch] is for a program with many executions, such as a server, and [Relay] for one whose work is one execution.
//
// # How long a watchdog has to wait
//
// A stuck execution is stopped by its own idle limit first, and the supervisor is needed only if the execution does not
// end within its grace. A relay sends nothing while its execution is silent. Therefore WatchdogSec= must be greater than
// the idle limit plus the grace, 2 min + 7 s by default, or the supervisor kills a healthy program before the library has
// stopped the stuck tool. A ticker that feeds a watchdog regardless of the work finds no stuck tool, and a message in the
// loop of the work lets the supervisor kill a long step; this package sends the heartbeats of the work instead.
//
// The package imports package timeout, because Watch needs all executions of the process. It is nevertheless in the
// folder of package heartbeat, because it passes heartbeats on.
//
// # Guarantees
//
//  1. A relay passes on heartbeats at most once in half of WATCHDOG_USEC, the first at once, with the newest detail.
//  2. While an idle check is held, the relay reports to the supervisor that the work goes on.
//  3. A silent execution causes no message: each message of a relay stands for a heartbeat or a hold, or says that
//     a command of package procgroup has begun to wait for input.
//  4. No heartbeat and no deadline waits for the supervisor. The stop of a relay waits for its last message, as the
//     stop of heartbeat.Relay does: for a tenth of a second if the supervisor does not read.
//  5. Without a supervisor there is no goroutine, no timer and no cost. After stop was called, or the execution has
//     ended, nothing is left but a message that is being sent.
package notify
