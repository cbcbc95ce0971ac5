package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The main package on npm has the programs' launcher, and requires a package for each system, of which
// npm installs the one that fits. There is no install script: package managers warn of those, or
// do not run them.
const (
	npmMain  = "mcpdeadline"
	npmScope = "@tooldeadline/"
	// mcpName is the name in the MCP registry, which looks for it in the package.
	mcpName = "io.github.tooldeadline/mcpdeadline"

	npmDescription = "An MCP proxy with which no tool call hangs, and timeout(1) with a limit on silence"
)

//go:embed npm
var npmFiles embed.FS

// A packageJSON is the file that describes a package.
type packageJSON struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	License              string            `json:"license"`
	Homepage             string            `json:"homepage"`
	Repository           map[string]string `json:"repository"`
	MCPName              string            `json:"mcpName,omitempty"`
	Bin                  map[string]string `json:"bin,omitempty"`
	Man                  []string          `json:"man,omitempty"`
	Files                []string          `json:"files"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	PreferUnplugged      bool              `json:"preferUnplugged,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
}

func (r *release) packageJSON(name, description string) packageJSON {
	return packageJSON{
		Name: name, Version: r.npmVersion(), Description: description, License: "MIT",
		Homepage:   "https://github.com/tooldeadline/tooldeadline",
		Repository: map[string]string{"type": "git", "url": "git+https://github.com/tooldeadline/tooldeadline.git"},
	}
}

func (r *release) npmVersion() string { return strings.TrimPrefix(r.version, "v") }

// npmSystem returns the name that Node has for a system.
func npmSystem(s system) (os, cpu string) {
	os, cpu = s.os, s.arch
	if os == "windows" {
		os = "win32"
	}
	if cpu == "amd64" {
		cpu = "x64"
	}
	return os, cpu
}

func platformPackage(s system) string {
	os, cpu := npmSystem(s)
	return npmScope + os + "-" + cpu
}

// packPlatform packs the programs for one system.
func (r *release) packPlatform(s system, files []file) error {
	p := r.packageJSON(platformPackage(s), "The programs of "+npmMain+" for one system; install "+npmMain+" instead")
	os, cpu := npmSystem(s)
	p.OS, p.CPU, p.Files, p.PreferUnplugged = []string{os}, []string{cpu}, []string{"bin", "licences"}, true
	for i, f := range files {
		if f.mode&0o111 != 0 {
			files[i].name = "bin/" + f.name
		}
	}
	return r.pack(p, files)
}

// packMain packs the launcher, with the manual pages among the files that all archives have.
func (r *release) packMain(common []file) error {
	p := r.packageJSON(npmMain, npmDescription)
	p.MCPName = mcpName
	p.Engines = map[string]string{"node": ">=18"}
	p.Files = []string{"*.js", "man"}
	p.Bin, p.OptionalDependencies = map[string]string{}, map[string]string{}
	for _, program := range programs {
		p.Bin[program] = program + ".js"
	}
	for _, s := range systems {
		p.OptionalDependencies[platformPackage(s)] = p.Version
	}
	var files []file
	for _, f := range common {
		if strings.HasPrefix(f.name, "man/") {
			files = append(files, f)
			p.Man = append(p.Man, "./"+f.name)
		}
	}
	err := fs.WalkDir(npmFiles, "npm", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := npmFiles.ReadFile(path)
		files = append(files, file{d.Name(), 0o644, data})
		return err
	})
	if err != nil {
		return err
	}
	return r.pack(p, files)
}

// pack has npm make the package's tarball.
func (r *release) pack(p packageJSON, files []file) error {
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return err
	}
	var about bytes.Buffer
	e := json.NewEncoder(&about)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		return err
	}
	dir := filepath.Join(r.tmp, "npm", strings.ReplaceAll(p.Name, "/", "-"))
	for _, f := range append(files, file{"LICENSE", 0o644, licence}, file{"package.json", 0o644, about.Bytes()}) {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return err
		}
		if err := os.Chmod(path, f.mode); err != nil { // whatever the umask is
			return err
		}
	}
	cmd := exec.Command("npm", "pack", "--ignore-scripts", "--pack-destination", r.out)
	cmd.Dir = dir
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("package %s: %w", p.Name, err)
	}
	return nil
}
