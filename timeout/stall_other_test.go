//go:build !unix

package timeout_test

func stallChild(bool) {}
