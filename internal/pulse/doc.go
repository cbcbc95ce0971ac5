// Package pulse implements the heartbeat cell that packages heartbeat and timeout share: the instant of the last beat,
// the holds on the idle check, the relays, and the link to the enclosing execution.
//
// Many goroutines write to a cell, and one engine judges it. Four rules keep that cheap and exact:
//
//  1. The stamp never goes back. Beats raise it with compare-and-swap.
//  2. A beat at or after the instant at which the idle limit fell due changes nothing. The engine
//     makes the same comparison, so it does not matter which of the two runs first.
//  3. Beats climb: each beat is recorded in every enclosing cell, up to the first that has ended.
//     Each cell absorbs bursts on its own.
//  4. Locks are taken from the inside out (a cell, then its parent), and no foreign code is ever called under one.
package pulse
