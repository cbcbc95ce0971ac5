package tooldeadline

// "go get" of this path records, in the go.mod and go.sum of whoever runs it, what the
// packages of this directory need, and of the packages below only what is imported here.
// So import those that need another module: without clock, sys and sync in go.sum, a program
// that imports timeout, procgroup or progress/task next would not build before a second "go get".
import (
	_ "github.com/tooldeadline/tooldeadline/procgroup"
	_ "github.com/tooldeadline/tooldeadline/progress/task"
	_ "github.com/tooldeadline/tooldeadline/timeout"
)
