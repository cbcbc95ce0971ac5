package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A licenceFile has one of the names under which licences and notices are kept. "UNLICENSE" is one.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)

// licences returns licences/MODULE/FILE for each module that is linked into a program for a system,
// and for Go itself.
func (r *release) licences(s system) ([]file, error) {
	found := map[string]file{}
	goroot, err := output(exec.Command("go", "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	if err := licencesIn(found, "go", goroot, []string{goroot}); err != nil {
		return nil, err
	}
	for _, program := range programs {
		modules, err := r.linked(program, s)
		if err != nil {
			return nil, err
		}
		for _, m := range modules {
			if err := licencesIn(found, m.path+"@"+m.version, m.dir, m.packages); err != nil {
				return nil, fmt.Errorf("%s for %s: %w", program, s, err)
			}
		}
	}
	var files []file
	for _, f := range found {
		files = append(files, f)
	}
	return sorted(files), nil
}

// A module is one that a program links.
type module struct {
	path, version, dir string
	packages           []string // folders of the packages that are linked
}

// linked returns the modules of other projects that a program links.
func (r *release) linked(program string, s system) ([]*module, error) {
	out, err := output(r.goCommand(program, s, "list", "-deps", "-json=Dir,Module", "."))
	if err != nil {
		return nil, err
	}
	byPath := map[string]*module{}
	var modules []*module
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Version string }
			}
		}
		if err := d.Decode(&p); err == io.EOF {
			return modules, nil
		} else if err != nil {
			return nil, err
		}
		m := p.Module
		if m == nil || m.Main || m.Replace != nil && m.Replace.Version == "" { // Go's own, the program, or the library
			continue
		}
		if byPath[m.Path] == nil {
			byPath[m.Path] = &module{path: m.Path, version: m.Version, dir: m.Dir}
			modules = append(modules, byPath[m.Path])
		}
		byPath[m.Path].packages = append(byPath[m.Path].packages, p.Dir)
	}
}

// licencesIn adds the licences in the folders of packages and all above them in the module. A module
// without one is an error: it could not be distributed.
func licencesIn(found map[string]file, name, dir string, packages []string) error {
	var folders []string
	for _, p := range packages {
		for ; len(p) > len(dir); p = filepath.Dir(p) {
			folders = append(folders, p)
		}
	}
	folders = append(folders, dir)
	slices.Sort(folders)
	n := 0
	for _, folder := range slices.Compact(folders) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				return err
			}
			within, err := filepath.Rel(dir, filepath.Join(folder, e.Name()))
			if err != nil {
				return err
			}
			to := "licences/" + name + "/" + filepath.ToSlash(within)
			found[to] = file{to, 0o644, data}
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("module %s has no licence in %s", name, dir)
	}
	return nil
}
