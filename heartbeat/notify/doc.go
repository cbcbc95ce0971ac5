// Package notify tells the supervisor of this process that its work goes on: systemd with WatchdogSec=, procgroup.Notify,
// or "deadline --notify".
//
//	func main() {
//		defer notify.Watch()()
//		serve()
//	}
//
// The supervisor is found in the environment: NOTIFY_SOCKET is where it listens, and WATCHDOG_USEC the time within which it
// wants to hear something. Without these the functions do nothing. The protocol is that of sd_notify(3).
//
// [Watch] is for a program with many executions, such as a server, and [Relay] for one whose work is one execution.
//
// # How long a watchdog has to wait
//
// An execution that hangs is stopped by its own idle limit first, and only what does not end within its grace is the
// supervisor's business. So WatchdogSec= has to be above the longest idle limit plus its grace: above 2 min + 7 s for the
// defaults. A shorter one kills a healthy program before the library has stopped the tool that hangs. A ticker that feeds a
// watchdog whatever the work does finds no hang, and one in the loop of the work has a long step killed; here what counts is
// the heartbeat of the work.
//
// The package stands above package timeout, since Watch asks for all executions of the process, although its folder is in
// that of heartbeat, which it passes on.
//
// # Guarantees
//
//  1. A relay passes on heartbeats at most once in half of WATCHDOG_USEC, the first at once, with the newest detail.
//  2. While an idle check is held, the supervisor is told that the work goes on.
//  3. A silent execution is not told of: what the supervisor hears is a heartbeat, or a hold.
//  4. No heartbeat and no deadline waits for the supervisor. The stop of a relay waits for its last message, as that of
//     heartbeat.Relay does: a tenth of a second if the supervisor does not read.
//  5. Without a supervisor there is no goroutine, no timer and no cost. When stop has been called, or the execution has ended,
//     nothing is left but a message that is being sent.
package notify
