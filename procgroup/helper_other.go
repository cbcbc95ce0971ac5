//go:build !linux

package procgroup

func helperMain() {}
