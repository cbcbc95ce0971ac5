package oteltimeout_test

import (
	"context"
	"reflect"
	"runtime/debug"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tooldeadline/tooldeadline/oteltimeout"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The scope of a span and of a metric has the name of the package and a
// version.
func TestScope(t *testing.T) {
	c := watch(t)
	_ = timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.WithName("search"))
	name := reflect.TypeFor[oteltimeout.Options]().PkgPath()
	if s := c.only().InstrumentationScope; s.Name != name || s.Version != "(devel)" {
		t.Errorf("the tracer is %s %q", s.Name, s.Version)
	}
	var all metricdata.ResourceMetrics
	if err := c.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.ScopeMetrics {
		if s.Scope.Name != name || s.Scope.Version != "(devel)" {
			t.Errorf("the meter is %s %q", s.Scope.Name, s.Scope.Version)
		}
	}
}

func TestVersion(t *testing.T) {
	self := reflect.TypeFor[oteltimeout.Options]().PkgPath()
	main := debug.Module{Path: "example.com/program", Version: "v9.9.9"}
	other := &debug.Module{Path: "example.com/other", Version: "v8.8.8"}
	for name, tc := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no info":               {nil, "(devel)"},
		"not in it":             {&debug.BuildInfo{Main: main, Deps: []*debug.Module{other}}, "(devel)"},
		"a dependency":          {&debug.BuildInfo{Main: main, Deps: []*debug.Module{other, {Path: self, Version: "v1.2.3"}}}, "v1.2.3"},
		"replaced by a fork":    {&debug.BuildInfo{Main: main, Deps: []*debug.Module{{Path: self, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}}}, "v1.2.4"},
		"replaced by a folder":  {&debug.BuildInfo{Main: main, Deps: []*debug.Module{{Path: self, Version: "v0.0.0", Replace: &debug.Module{Path: "../x"}}}}, "(devel)"},
		"the main module":       {&debug.BuildInfo{Main: debug.Module{Path: self, Version: "v1.2.3"}}, "v1.2.3"},
		"the main one in tests": {&debug.BuildInfo{Main: debug.Module{Path: self}}, "(devel)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := oteltimeout.VersionIn(tc.info); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
