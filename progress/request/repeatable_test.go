package request_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.5.
func TestRepeatable(t *testing.T) {
	for _, tc := range []struct {
		name    string
		methods []string
		want    []string
	}{
		{"none", nil, nil},
		{"named", []string{"tools/list", "ping"}, []string{"tools/list", "ping"}},
		{"pattern", []string{"tools/*"}, []string{"tools/list"}},
		{"all", []string{"*"}, []string{"tools/list", "ping", "resources/read", ""}},
		{"a call, by name alone", []string{"tools/call"}, []string{"tools/call"}},
		{"what never is", []string{"initialize", "server/discover", "subscriptions/listen"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			match := request.Repeatable(tc.methods...)
			var got []string
			for _, m := range []string{"tools/list", "ping", "resources/read", "", "tools/call", "initialize", "server/discover", "subscriptions/listen"} {
				if match(m) {
					got = append(got, m)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPermanent(t *testing.T) {
	_, notFound := exec.LookPath("no such command")
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("connecting: %w", notFound), true},
		{&exec.Error{Name: "x", Err: fs.ErrPermission}, true},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, true},
		{errors.New("refused"), false},
		{context.DeadlineExceeded, false},
		{nil, false},
	} {
		if got := request.Permanent(tc.err); got != tc.want {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
}

func TestTimedOut(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{&request.Error{Stop: &timeout.Error{Kind: timeout.ErrIdle}}, true},
		{fmt.Errorf("transport: %w", &request.Error{Stop: &timeout.Error{Kind: timeout.ErrTotal}}), true},
		{&request.Error{Stop: &timeout.Error{Kind: timeout.ErrAborted}}, false},
		{&timeout.Error{Kind: timeout.ErrIdle}, false}, // the server's or the tool's
		{context.DeadlineExceeded, false},
		{nil, false},
	} {
		if got := request.TimedOut(tc.err); got != tc.want {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
}
