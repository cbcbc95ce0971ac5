// Package guidance connects package progress to package toolcall. A wait for a person that was stopped has
// words for the person who configures it, and they belong to nobody's API.
package guidance

// Of returns what to tell about the wait that a detail of a heartbeat describes, such as "Command timed out
// waiting for approval." and what to do about it, or "" for any other detail. Package progress sets it.
var Of = func(detail any) string { return "" }
