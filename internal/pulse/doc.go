// Package pulse is the heartbeat cell that heartbeat and timeout share: the
// instant of the last beat, the holds on the idle check, the relays that listen,
// and the way up to the execution around it.
//
// A cell is written by many goroutines and judged by one engine. Four rules keep
// that cheap and exact:
//
//  1. The stamp never goes back. Beats raise it with compare-and-swap.
//  2. A beat that comes at or after the instant at which the idle limit fell due
//     changes nothing: it is the same comparison that the engine makes, so it does
//     not matter which of the two runs first.
//  3. Beats climb: each one is recorded in every cell around it, up to the first
//     cell that has ended. Each cell absorbs bursts on its own.
//  4. Locks are taken from the inside out (a cell, then its parent), and nothing
//     foreign is ever called under one.
package pulse
