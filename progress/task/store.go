package task

import (
	"context"
	"errors"
)

// The errors that errors.Is finds in the errors of a [Store]. Any other error means that the store
// could not be reached, and does not describe the task.
var (
	// ErrUnknown means that the owner has no such record, or that it has expired.
	ErrUnknown = errors.New("unknown task")
	// ErrConflict means that the stored record has another revision than the one to be stored or, from
	// Create, that the owner already has a record with this ID.
	ErrConflict = errors.New("the task has changed meanwhile")
	// ErrFull means that there is no room for another record.
	ErrFull = errors.New("no room for another task")
	// ErrTooLarge means that the record is larger than the store accepts.
	ErrTooLarge = errors.New("the task is too large to be stored")
	// ErrCursor means that the cursor is malformed, so that the store cannot have returned it.
	ErrCursor = errors.New("bad cursor")
)

// ErrCancelled is the cause of a tool's context when a client has cancelled the task or continuation.
var ErrCancelled = errors.New("the task was cancelled")

// ErrLost is the cause of a tool's context when the task no longer belongs to this process, so that
// its result could not be fetched: the store has declared the process gone, for example because the
// lease of a suspended replica has ended (see [Record.Lost]), or the store no longer has the task.
// The text of the cause says which, and errors.Is finds ErrLost in it. Like any abort it has the
// exit code 130.
var ErrLost = errors.New("the task was lost")

// A Store keeps tasks. [NewMemory] returns the store of a single process. With a shared store, any replica
// of a server can answer requests about the tasks of another. Package tasktest has the tests that every
// store must pass.
//
// All processes change a task only by compare-and-set of its record. The process that runs the tool writes
// the status, message and result, and also adds the result to a task that was cancelled meanwhile. The
// process that receives a tasks/cancel writes a final status, and the process that receives a tasks/update
// writes answers; the process that runs the tool gets both from Wait. If a store finds that the process of a
// task is gone, it stores the task's [Record.Lost].
//
// A store removes records when they expire. To keep within its bounds it may remove records with a final
// status earlier, but no others. Neither the store nor the caller changes a record that was returned.
//
// All methods are safe for concurrent use, and return [context.Cause] of ctx when ctx ends. [Tasks.Store]
// says what happens if a method does not return then, or panics.
type Store interface {
	// Create stores a new record, and returns it as stored, with its revision. The store may prefix
	// the ID, for example with the name of the process. Get finds the record as soon as Create has
	// returned. Errors: ErrFull, ErrTooLarge, and ErrConflict if the owner already has a record with
	// this ID. After any error except these three, the record may have been stored.
	Create(ctx context.Context, r Record) (Record, error)
	// Get returns the owner's record with this id. Errors: ErrUnknown.
	Get(ctx context.Context, owner, id string) (Record, error)
	// Update replaces the stored record if its revision is that of r, and returns r with its new
	// revision. Errors: ErrConflict if the stored record has another revision, ErrUnknown, ErrTooLarge;
	// nothing has changed then. After any error except these three, r may have been stored.
	Update(ctx context.Context, r Record) (Record, error)
	// List returns at most limit tasks of an owner, beginning at a cursor: "" for the first page, and
	// otherwise the next of the page before. limit is 1 or more. On the last page next is "". A task that exists during
	// the whole listing is listed exactly once; the order is up to the store. Records may lack
	// their Answer. Errors: ErrCursor.
	List(ctx context.Context, owner, cursor string, limit int) (page []Record, next string, err error)
	// Wait returns the record as soon as its revision differs from after; if it already does, Wait returns
	// at once. Intermediate revisions may be skipped. Errors: ErrUnknown, also if the record expires
	// during the wait.
	Wait(ctx context.Context, owner, id string, after uint64) (Record, error)
}
