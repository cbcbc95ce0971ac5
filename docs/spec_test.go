package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var (
	ruleHead = regexp.MustCompile(`(?m)^(?:## (\d+)\. |\*\*(\d+\.\d+)\*\* )`)
	ruleRef  = regexp.MustCompile(`\((\d+\.\d+)(?:, (\d+\.\d+))*\)`)

	// A citation is a rule or a section, and then more rules. A comment may break between
	// any two words of it.
	gap      = `(?:\s|//|#|\*|>)*`
	citation = regexp.MustCompile(`SPEC` + gap + `(\d+(?:\.\d+)*)((?:` + gap + `(?:,|;|/|-|–|and\b|or\b|to\b)` + gap + `(?:(?:and|or)\b` + gap + `)?\d+\.\d+(?:\.\d+)*)*)`)
	another  = regexp.MustCompile(`(-|–|\bto\b)?` + gap + `(\d+(?:\.\d+)*)`)
)

// rules returns the numbers of the rules and of the sections.
func rules(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("docs/SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range ruleHead.FindAllSubmatch(text, -1) {
		number := string(m[1]) + string(m[2]) // one of them
		if known[number] {
			t.Errorf("docs/SPEC.md has %s twice", number)
		}
		known[number] = true
	}
	if len(known) < 80 {
		t.Fatalf("docs/SPEC.md has only %d rules and sections", len(known))
	}
	return known
}

type cite struct {
	rule string
	line int // that the citation begins in
}

// citations returns each rule that text cites.
func citations(text string) (all []cite) {
	for _, m := range citation.FindAllStringSubmatchIndex(text, -1) {
		if before, _ := utf8.DecodeLastRuneInString(text[:m[0]]); unicode.IsLetter(before) || unicode.IsDigit(before) || before == '_' {
			continue // another word; behind a \b the expression would not be looked for by its first word, which is much slower
		}
		line := 1 + strings.Count(text[:m[0]], "\n")
		last := text[m[2]:m[3]]
		all = append(all, cite{last, line})
		for _, next := range another.FindAllStringSubmatch(text[m[4]:m[5]], -1) {
			if next[1] != "" {
				for _, rule := range between(last, next[2]) {
					all = append(all, cite{rule, line})
				}
			}
			last = next[2]
			all = append(all, cite{last, line})
		}
	}
	return all
}

// unknown returns what text cites and known does not have.
func unknown(text string, known map[string]bool) (bad []string) {
	for _, c := range citations(text) {
		if !known[c.rule] {
			bad = append(bad, fmt.Sprintf("%d: SPEC %s", c.line, c.rule))
		}
	}
	return bad
}

// between returns the rules of a range but for its ends: 3.2, 3.3 for 3.1 and 3.4. A range
// that is none, such as 3.4 to 3.1 or 3.1 to 4.2, returns a rule that does not exist.
func between(first, last string) (numbers []string) {
	section, from, _ := strings.Cut(first, ".")
	other, to, _ := strings.Cut(last, ".")
	i, _ := strconv.Atoi(from)
	n, _ := strconv.Atoi(to)
	if section != other || i >= n {
		return []string{first + " to " + last}
	}
	for i++; i < n; i++ {
		numbers = append(numbers, fmt.Sprintf("%s.%d", section, i))
	}
	return numbers
}

// Each rule that anything in the repository cites stands in docs/SPEC.md.
func TestCitedRulesExist(t *testing.T) {
	known := rules(t)
	files, cited := 0, 0
	eachFile(t, cites, func(path, text string) {
		files++
		cited += len(citation.FindAllString(text, -1))
		for _, bad := range unknown(text, known) {
			t.Errorf("%s:%s does not exist", path, bad)
		}
	})
	if files < 50 || cited < 50 {
		t.Errorf("only %d citations in %d files: is everything looked at?", cited, files)
	}
}

// eachFile calls do with each file of the repository that is wanted.
func eachFile(t *testing.T, wanted func(path string) bool, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular() || !wanted(path):
			return nil
		}
		text, err := os.ReadFile(path)
		do(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cites says whether a file is one that a person writes, in which rules may be cited.
func cites(path string) bool {
	switch filepath.Ext(path) {
	case ".go", ".md", ".mjs", ".yml", ".txt":
		return true
	case "":
		dir := filepath.Base(filepath.Dir(path))
		return dir == "scripts" || dir == ".ci" || filepath.Base(path) == "Makefile"
	}
	return false
}

var notBuilt = regexp.MustCompile(`(?m)^Not built yet: (.*)\.$`)

// Each rule has a test that names it, or docs/SPEC.md has it in its line "Not built yet: 13.1, 13.3."
func TestRulesAreProved(t *testing.T) {
	known, proved := rules(t), map[string]bool{}
	tests := func(path string) bool {
		return strings.HasSuffix(path, "_test.go") || filepath.Ext(path) == ".mjs" || strings.HasPrefix(filepath.ToSlash(path), "progress/internal/sdktest/")
	}
	eachFile(t, tests, func(_, text string) {
		for _, c := range citations(text) {
			proved[c.rule] = true
		}
	})
	text, err := os.ReadFile("docs/SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	if m := notBuilt.FindStringSubmatch(string(text)); m != nil {
		for _, c := range citations("SPEC " + m[1]) {
			if missing[c.rule] = true; !known[c.rule] {
				t.Errorf("docs/SPEC.md says that %s is not built yet, which does not exist", c.rule)
			}
		}
	}
	for rule := range known {
		if strings.Contains(rule, ".") && !proved[rule] && !missing[rule] {
			t.Errorf("no test names SPEC %s, and docs/SPEC.md does not say that it is not built yet", rule)
		}
	}
}

// The rules refer to each other by number alone: (4.5), (4.3, 4.6).
func TestRulesReferToRules(t *testing.T) {
	known := rules(t)
	text, err := os.ReadFile("docs/SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	found := ruleRef.FindAllSubmatch(text, -1)
	if len(found) == 0 {
		t.Error("no reference found")
	}
	for _, m := range found {
		for _, n := range m[1:] {
			if len(n) > 0 && !known[string(n)] {
				t.Errorf("docs/SPEC.md refers to %s, which does not exist", n)
			}
		}
	}
}

// A § in a text stands for SPEC, or this file would be full of bad citations.
func TestUnknownRules(t *testing.T) {
	known := map[string]bool{"2": true, "2.1": true, "2.2": true, "2.4": true, "3": true, "3.1": true, "3.10": true}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a rule", "// § 2.1", nil},
		{"a section", "// (§ 2): how", nil},
		{"the end of a sentence", "// § 2.1. § 3.10.", nil},
		{"a rule that does not exist", "x\n// § 2.3: y", []string{"2: § 2.3"}},
		{"a section that does not exist", "// § 4.", []string{"1: § 4"}},
		{"a digit too many", "// § 3.100", []string{"1: § 3.100"}},
		{"a number too many", "// § 2.1.3", []string{"1: § 2.1.3"}},
		{"a list", "// § 2.1, 2.2, 2.3 and 3.1", []string{"1: § 2.3"}},
		{"a list with two conjunctions", "// § 2.1, 2.2, and 2.5", []string{"1: § 2.5"}},
		{"a list that goes on in the next line", "// § 2.1,\n\t//     2.3", []string{"1: § 2.3"}},
		{"a break before the number", "// as §\n// 2.3 says", []string{"1: § 2.3"}},
		{"a break in a list of a script", "# § 2.1 or\n# 2.3", []string{"1: § 2.3"}},
		{"a whole range", "// § 2.1 to 2.2", nil},
		{"a range with a hole", "// § 2.1 to 2.4", []string{"1: § 2.3"}},
		{"a range with a dash", "// § 2.2–2.4", []string{"1: § 2.3"}},
		{"a range beyond the end", "// § 2.2 to 2.5", []string{"1: § 2.3", "1: § 2.5"}},
		{"a range backwards", "// § 2.4 to 2.1", []string{"1: § 2.4 to 2.1"}},
		{"a range over sections", "// § 2.4 to 3.1", []string{"1: § 2.4 to 3.1"}},
		{"a range and more", "// § 2.1 to 2.2, 3.2", []string{"1: § 3.2"}},
		{"other figures", "// § 2.1, and 10 s, 20 of them", nil},
		{"another word", "MY§ 9.9, § of all", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(unknown(strings.ReplaceAll(tt.text, "§", "SPEC"), known), "\n")
			want := strings.ReplaceAll(strings.Join(tt.want, "\n"), "§", "SPEC")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
