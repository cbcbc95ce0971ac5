//go:build unix && cgo

package main

const withCgo = true
