// Package exact reads and edits JSON from one program that is passed on to another.
//
// Package encoding/json accepts the key "Method" for "method", and uses the last of two equal keys. Other programs that
// read the same message may not. A check of the message must see the values that they see. Therefore package exact
// compares keys exactly, after unescaping them, and returns an error for an object in which two readers could find
// different values for one key. Values are slices of the input, and edits are spliced in, so that a large message is
// read and copied only once.
package exact
