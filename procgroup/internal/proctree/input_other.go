//go:build !linux

package proctree

import (
	"os"
	"syscall"
)

// An Input is a file that a command reads.
type Input struct{}

// InputOf reports false: nobody has found out how this system shows what a process waits for.
func InputOf(*os.File) (Input, bool) { return Input{}, false }

// WatchInput returns nil.
func WatchInput(Tree, Input) InputMeter { return nil }

func hasTerminal(*syscall.SysProcAttr) bool { return false }
