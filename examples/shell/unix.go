//go:build unix

package main

import (
	"os"
	"slices"
	"syscall"
)

const sigcont = syscall.SIGCONT

// forgetSecrets executes the program again with the environment env, unless it already has that environment. Commands
// run as the same user, and could read other variables in /proc, from which os.Clearenv would not remove them.
func forgetSecrets(env []string) error {
	own := slices.Sorted(slices.Values(os.Environ()))
	if slices.Equal(own, env) {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(exe, os.Args, env)
}
