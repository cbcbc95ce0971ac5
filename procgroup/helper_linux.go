package procgroup

import "os/exec"

func startWithHelper(cmd *exec.Cmd) (tree, error) {
	return nil, unavailable(Helper, unsupported("not yet"))
}
