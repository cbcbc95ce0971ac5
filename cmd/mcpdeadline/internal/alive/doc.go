// Package alive has the signs of life of a server: which there are, of which call one is, what suspends the idle check, and
// what a call is doing in words.
package alive
