package inspect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A program with the page can be tested in bubbles, and runs beside and after them.
func TestBubble(t *testing.T) {
	for i := range 2 {
		if i == 1 {
			run(t, "beside the bubble", nil)
		}
		synctest.Test(t, func(t *testing.T) {
			err := timeout.Run(t.Context(), func(context.Context) error {
				time.Sleep(5500 * time.Millisecond)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
