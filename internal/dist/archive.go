package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is one file of an archive.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}

// archive writes the archive for a system: a zip for Windows, otherwise a tar.gz.
func (r *release) archive(s system, files []file) error {
	folder := "tooldeadline_" + r.version + "_" + s.String()
	name, pack := folder+".tar.gz", tarGz
	if s.os == "windows" {
		name, pack = folder+".zip", zipped
	}
	data, err := pack(folder, files, r.time)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// tarGz returns an archive of files in a folder. It depends on nothing but its arguments: no user,
// no time of its own, and always the same order.
func tarGz(folder string, files []file, at time.Time) ([]byte, error) {
	var buf bytes.Buffer
	gz, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(gz)
	for _, f := range sorted(files) {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = gz.Close()
	return buf.Bytes(), err
}

// zipped does the same as tarGz, for a zip.
func zipped(folder string, files []file, at time.Time) ([]byte, error) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range sorted(files) {
		name := f.name
		if folder != "" {
			name = folder + "/" + name
		}
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}
