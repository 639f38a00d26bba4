package server

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// CacheDir is where data folder templates and fetched programs are kept
// between runs: $DUECLAIM_CACHE, else dueclaim in the user's cache folder.
func CacheDir() string {
	if dir := os.Getenv("DUECLAIM_CACHE"); dir != "" {
		return dir
	}
	base := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache"))
	return filepath.Join(base, "dueclaim")
}

// recipeVersion is part of a template's name. Raise it when an initData changes.
const recipeVersion = 1

// Prepare makes the data folder template of a kind unless it is there
// already. Copying it is several times faster than to initialise a folder for
// each package under test.
func Prepare(b Binary) error {
	_, err := template(b)
	return err
}

// template returns the prepared data folder for this very program, "" for
// kinds that need none.
func template(b Binary) (string, error) {
	r, err := recipeOf(b.Kind)
	if err != nil || r.initData == nil {
		return "", err
	}
	info, err := os.Stat(b.Path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendln(nil, recipeVersion, b, info.Size(), info.ModTime().UnixNano()))
	dir := filepath.Join(CacheDir(), "templates")
	target := filepath.Join(dir, fmt.Sprintf("%s-%x", b.Kind, sum[:6]))
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// One process prepares, the others wait for it: the packages of a test run start together.
	held, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer held.Close()
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	work, err := newDir(string(b.Kind)+"-template", r.unprivileged)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := r.initData(b, work); err != nil {
		return "", fmt.Errorf("prepare a data folder: %w", err)
	}
	// A name of its own until it is whole, so that a run that is cut off leaves no half template.
	half := fmt.Sprintf("%s.%d", target, os.Getpid())
	if err := errors.Join(os.RemoveAll(half), copyTree(filepath.Join(work, "data"), half)); err != nil {
		return "", err
	}
	return target, os.Rename(half, target)
}

// copyTree copies folders and regular files; sockets and the like are left out.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, info.Mode().Perm()|0o700)
		case info.Mode().IsRegular():
			return copyFile(path, target, info.Mode().Perm())
		}
		return nil
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
