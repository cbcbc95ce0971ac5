//go:build !linux

package host_test

func roles()          {}
func removePrograms() {}
