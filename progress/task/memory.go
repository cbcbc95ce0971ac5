package task

// Memory is a [Store] in the memory of the process, bounded in number and bytes. Tasks end with
// the process. The zero Memory is ready to use; set its fields before.
//
// Beyond its bounds the finished tasks that expire first go early; where that does not help, there
// is no room for a new task, and a result is too large.
type Memory struct {
	// MaxTasks is how many tasks it keeps, running and finished; 0 or less is 1000.
	MaxTasks int
	// MaxBytes bounds what they take: their results, messages and questions, and 1 KiB each; 0
	// or less is 64 MiB.
	MaxBytes int64
}
