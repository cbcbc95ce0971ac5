//go:build unix && !linux

package main

func hang([]string) {}
