package main

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A library that reads YAML as JSON reads a policy, beside whatever else is in the file.
func Example_yaml() {
	const file = `
server:
  address: ":8137"
mcp:
  timeout: 1800
  idle_timeout: 2m
  tools:
    tlc_smoke: {timeout: 120, env: TLC_SMOKE}
    build: {soft: 45}
`
	var p policy.Policy
	if err := yaml.UnmarshalStrict([]byte(file), &p); err != nil {
		fmt.Println(err)
		return
	}
	p.Lookup = func(key string) (string, bool) { return "90000", key == "TLC_SMOKE_TIMEOUT_MS" }
	fmt.Println(p.Explain("tlc_smoke", 0))
	fmt.Println(p.Explain("build", time.Hour))
	// Output:
	// timeout 1m30s (TLC_SMOKE_TIMEOUT_MS), idle_timeout 1m30s (default, cut to the timeout), grace 7s (default) <nil>
	// timeout 1h0m0s (request), idle_timeout 2m0s (default), grace 7s (default), soft 45s (tool) <nil>
}
