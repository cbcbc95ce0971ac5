//go:build !linux

package main

func playHost() {}
