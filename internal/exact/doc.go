// Package exact reads JSON that others wrote and that is passed on to somebody else.
//
// Encoding/json takes "Method" for "method" and of two equal keys the last, but other programs that read the same
// message may not. What is checked here must be what they see. So a key is the one that is written, escapes included,
// and an object in which two readers could find different values for one key is an error. Values are slices of what
// was read, and what is changed is spliced in, so that a large message is read and copied once.
package exact
