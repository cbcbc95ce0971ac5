package task

import (
	"context"
	"errors"
)

// The errors that errors.Is finds in the errors of a [Store]. Any other error says that the store
// could not be reached, and nothing about the task.
var (
	// ErrUnknown means that the owner has no such record, or that it has expired.
	ErrUnknown = errors.New("unknown task")
	// ErrConflict means that the record has another revision by now.
	ErrConflict = errors.New("the task has changed meanwhile")
	// ErrFull means that there is no room for another record.
	ErrFull = errors.New("no room for another task")
	// ErrTooLarge means that the record is larger than the store accepts.
	ErrTooLarge = errors.New("the task is too large to be stored")
	// ErrCursor means that the store has not issued the cursor.
	ErrCursor = errors.New("bad cursor")
)

// ErrCancelled is the cause of a tool's context when the client has cancelled the task.
var ErrCancelled = errors.New("the task was cancelled")

// ErrLost is the cause of a tool's context when the task no longer belongs to this process, so that
// its result could not be fetched: the store has declared the process gone, as when the lease of a
// replica that was suspended has ended (see [Record.Lost]), or no longer has the task. The cause
// says which, and errors.Is finds ErrLost in it. Like any abort it has the exit code 130.
var ErrLost = errors.New("the task was lost")

// A Store keeps tasks. [Memory] is one for a single process; one that is shared lets any
// replica of a server answer for tasks of another. Package tasktest has the tests that every
// store must pass.
//
// All that happens to a task goes through its record, by compare-and-set: the process that runs the
// tool writes status, message and result; a tasks/cancel writes a final status and a tasks/update
// answers, wherever they arrive, and the running process learns of it from Wait. A store has
// nothing else to route. A store that finds the process of a task gone stores the task's
// [Record.Lost].
//
// A store removes records when they expire. It may remove records with a final status earlier to
// keep within its bounds, the oldest first, and removes no others. Records that it returns are
// not changed later, by either side.
//
// All methods are safe for concurrent use, and return when ctx ends.
type Store interface {
	// Create stores a new record, and returns it as stored, with its revision. The store may prefix
	// the ID, for example with the name of the process. From then on Get finds it. Errors: ErrFull,
	// ErrTooLarge, ErrConflict where there is such a record.
	Create(ctx context.Context, r Record) (Record, error)
	// Get returns a record of an owner. Errors: ErrUnknown.
	Get(ctx context.Context, owner, id string) (Record, error)
	// Update replaces the stored record if its revision is that of r, and returns r with its new
	// revision. Otherwise nothing changes. Errors: ErrConflict, ErrUnknown, ErrTooLarge.
	Update(ctx context.Context, r Record) (Record, error)
	// List returns the tasks of an owner, at most limit of them, from a cursor that List has
	// returned before, or "" for the first page. next is "" at the end. A task that exists for as
	// long as the listing goes on is in it exactly once; the order is the store's. Records may lack
	// their Answer. Errors: ErrCursor.
	List(ctx context.Context, owner, cursor string, limit int) (page []Record, next string, err error)
	// Wait returns the record as soon as its revision differs from the given one, which may be at
	// once. Revisions in between may be skipped. Errors: ErrUnknown, also when the record expires
	// meanwhile.
	Wait(ctx context.Context, owner, id string, after uint64) (Record, error)
}
