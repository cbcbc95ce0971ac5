//go:build unix

package main

import "syscall"

const sigcont = syscall.SIGCONT
