package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A fault is one change of a file: New replaces Old. Its place is the Nth line with the text Text in the function Func,
// so that it can be found again after other changes of the file.
type fault struct {
	Package, File, Func, Text string
	Nth                       int // index among the lines with this text in the function
	Column                    int // offset in the line, in bytes
	Old, New                  string

	at int // offset in the file
}

func (f fault) String() string {
	short := func(s string) string {
		if s = strings.Join(strings.Fields(s), " "); len(s) > 60 {
			s = s[:57] + "..."
		}
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s %s: %s for %s in %s", f.File, f.Func, short(f.New), short(f.Old), short(f.Text))
}

// turned maps an operator to the operators that replace it.
var turned = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// draw returns n random faults that compile, or as many as there are, in the files of a package for this system.
func draw(dir string, n int, random *rand.Rand) ([]fault, error) {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var all []fault
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		found, err := faults(dir, filepath.Join(dir, name), src)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var taken []fault
	for _, f := range all {
		if len(taken) == n {
			break
		}
		ok, err := f.compiles()
		if err != nil {
			return nil, err
		}
		if ok {
			taken = append(taken, f)
		}
	}
	return taken, nil
}

// faults returns all faults that can be made in a file, in the order of the file.
func faults(dir, path string, src []byte) (list []fault, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := nameOf(fn)
		body := string(src[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset])
		add := func(from, to token.Pos, by string) {
			at, end := set.Position(from).Offset, set.Position(to).Offset
			start := bytes.LastIndexByte(src[:at], '\n') + 1
			line, _, _ := strings.Cut(string(src[start:]), "\n")
			before := body[:max(0, start-set.Position(fn.Pos()).Offset)]
			nth := 0
			for l := range strings.Lines(before) {
				if strings.TrimSuffix(l, "\n") == line {
					nth++
				}
			}
			list = append(list, fault{Package: dir, File: path, Func: name, Text: line, Nth: nth, Column: at - start, Old: string(src[at:end]), New: by, at: at})
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				for _, op := range turned[n.Op] {
					add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
				}
			case *ast.IfStmt:
				add(n.Cond.Pos(), n.Cond.End(), "!("+string(src[set.Position(n.Cond.Pos()).Offset:set.Position(n.Cond.End()).Offset])+")")
			case *ast.BasicLit:
				if n.Kind == token.INT {
					add(n.Pos(), n.End(), "("+n.Value+"+1)")
				}
			case *ast.Ident:
				if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
					add(n.Pos(), n.End(), other)
				}
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
				add(n.Pos(), n.End(), "{}")
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					add(n.Pos(), n.End(), "{}")
				}
			}
			return true
		})
	}
	return list, nil
}

// nameOf returns the name of a function, with the type of its receiver.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return "(" + types.ExprString(fn.Recv.List[0].Type) + ")." + fn.Name.Name
}

// find returns the offset of the fault in src, or -1 if src does not have it.
func (f fault) find(src []byte) int {
	all, _ := faults(f.Package, f.File, src)
	for _, g := range all {
		at := g.at
		if g.at = f.at; g == f {
			return at
		}
	}
	return -1
}

// overlay writes the changed file, and the list for "go build -overlay", to dir, and returns the path of the list. The
// error is fs.ErrNotExist if the file no longer has the line.
func (f fault) overlay(dir string) (string, error) {
	src, err := os.ReadFile(f.File)
	if err != nil {
		return "", err
	}
	at := f.find(src)
	if at < 0 {
		return "", fs.ErrNotExist
	}
	changed := string(src[:at]) + f.New + string(src[at+len(f.Old):])
	to := filepath.Join(dir, "fault.go")
	if err := os.WriteFile(to, []byte(changed), 0o600); err != nil {
		return "", err
	}
	from, err := filepath.Abs(f.File)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {from: to}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// compiles reports whether the package can be built with the fault.
func (f fault) compiles() (bool, error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := f.overlay(dir)
	if err != nil {
		return false, err
	}
	_, err = command(dir, f.Package, "build", "-overlay", overlay, "-o", os.DevNull, ".")
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

// command runs the go command in the folder of a package, which may be in a nested module, with tmp for temporary files.
func command(tmp, dir string, args ...string) (output []byte, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.FromSlash(dir)
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+tmp)
	return cmd.CombinedOutput()
}
