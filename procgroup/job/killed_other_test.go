//go:build unix && !linux

package job_test

func host() {}
