// Package waitadvice connects package progress to package toolcall. It supplies the text for an error of a stopped wait
// for a person, which advises how to configure the limits, without an exported API.
package waitadvice

// Of returns the text for a wait that was stopped, if detail, the detail of a heartbeat, describes a wait: a sentence
// such as "Command timed out waiting for approval." and advice on what to do. For any other detail it returns "".
// Package progress sets Of.
var Of = func(detail any) string { return "" }
