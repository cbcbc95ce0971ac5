// Package alive tracks the signs of life of a server: the kinds of signs, the calls whose limits each sign renews,
// what suspends the idle check, and a description of what a call is doing.
package alive
