package proctree

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// SPEC 6.23: what others have started since, and is alive, is not taken for something that the command has left: it
// would cost a look at all processes after each command on a busy machine.
func TestOthersAreNoStrangers(t *testing.T) {
	for kind, start := range map[Kind]func(*exec.Cmd) (Tree, error){Group: startInGroup, Descendants: startWithCookie} {
		t.Run(kind.String(), func(t *testing.T) {
			alone := func() bool {
				cmd := exec.Command("sh", "-c", "read x")
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := ownGroup(cmd); err != nil {
					t.Fatal(err)
				}
				tree, err := start(cmd)
				if err != nil {
					t.Fatal(err)
				}
				defer tree.Close()
				defer tree.Kill(time.Now().Add(reapTime))
				stranger := exec.Command("sleep", "60")
				if err := stranger.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() {
					_ = stranger.Process.Kill()
					_ = stranger.Wait()
				}()
				_ = in.Close()
				tree.Wait(context.Background(), time.Time{})
				return !tree.(*linuxTree).mayHaveOthers(time.Now().Add(time.Second))
			}
			for range 50 { // more processes than are looked at one by one may have begun
				if alone() {
					return
				}
			}
			t.Error("the stranger was taken for what the command has left")
		})
	}
}
