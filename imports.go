package tooldeadline

// "go get" of this path records, in the caller's go.mod and go.sum, the requirements of the
// packages in this directory, and of the packages below only those imported here. These imports are
// the packages that need another module. Without pty, sys and sync in go.sum, a program that then
// imports procgroup or progress/task would not build before a second "go get".
import (
	_ "github.com/tooldeadline/tooldeadline/procgroup"
	_ "github.com/tooldeadline/tooldeadline/progress/task"
)
