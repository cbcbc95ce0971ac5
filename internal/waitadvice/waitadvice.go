// Package waitadvice connects package progress to package toolcall. A wait for a person that was stopped has
// words for whoever configures it, and they belong to no public API.
package waitadvice

// Of returns the text for a wait that was stopped, if detail, that of a heartbeat, describes one: a sentence such as
// "Command timed out waiting for approval." and what to do about it. For any other detail it returns "". Package
// progress sets it.
var Of = func(detail any) string { return "" }
