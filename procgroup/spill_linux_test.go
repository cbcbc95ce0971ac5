package procgroup_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

// SPEC 6.20: that the disk is full is no error of the command.
func TestSpillToFullDisk(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	dir, err := procgroup.NewSpillDir(mount, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	Test(t, Scenario{
		Name: "flood", Script: Script{writes(200_000)}, Options: []procgroup.Option{procgroup.Capture{Spill: dir}},
		Want: []string{"0s 1: exit 0", "0s wait: exited 0"},
		Check: func(r *Run) {
			s := r.Result.Spill
			info, err := os.Stat(s.Path)
			if err != nil || !errors.Is(s.Err, syscall.ENOSPC) || s.Bytes != info.Size() || s.Bytes == 0 || r.Result.Stdout.Total != 200_000 {
				r.Errorf("%+v, %v", s, err)
			}
		},
	})
}
