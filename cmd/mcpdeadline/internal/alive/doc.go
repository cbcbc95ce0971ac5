// Package alive tracks the signs of life of a server. It selects which signs count, renews the idle limits of the calls
// that a sign belongs to, suspends idle limits while the host is asked a question, and describes the state of a call.
package alive
