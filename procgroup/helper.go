package procgroup

import "sync/atomic"

// helperReady says that HelperMain was called, so that this program, started again, will
// be a helper and not itself.
var helperReady atomic.Bool

// HelperMain must be the first thing in main, or in TestMain, of a program that uses the
// [Helper] containment. In the program itself it does nothing but remember that it was
// called. For each command the program is started once more; in that process HelperMain
// starts the command, and does not return.
//
//	func main() {
//		procgroup.HelperMain()
//		...
//	}
//
// What the program does in init functions and for package variables happens in the helper
// too. Where the system has no such containment, HelperMain does nothing.
func HelperMain() {
	helperMain()
	helperReady.Store(true)
}
