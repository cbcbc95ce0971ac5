package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// leastToken and mostToken are the fewest and the most characters of a token. A token of loadToken has 52.
const leastToken, mostToken = 32, 4096

// loadToken returns the token in a file that only the user can read. If the file does not exist, loadToken creates it
// with a random token.
func loadToken(path string) (token string, err error) {
	token, err = readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	token = rand.Text() + rand.Text()
	_, err = file.WriteString(token + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return readToken(path) // the file system may have no modes
}

func readToken(path string) (string, error) {
	file, err := openPrivate(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostToken+2))
	if err != nil {
		return "", err
	}
	token := strings.TrimSuffix(string(text), "\n")
	if n := len(token); n < leastToken || n > mostToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: want one line of %d to %d printable characters without spaces", path, leastToken, mostToken)
	}
	return token, nil
}

// has reports whether a request has the token. Its time does not depend on the token, because it compares hashes.
func has(r *http.Request, token string) bool {
	scheme, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}
