package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SidRoot is where setup unpacks a kind out of Debian sid, beside the system.
func SidRoot(k Kind) string { return filepath.Join(CacheDir(), string(k)+"root") }

// SidReason is where setup writes why a kind could not be had.
func SidReason(k Kind) string { return filepath.Join(CacheDir(), string(k)+"-missing") }

// unpacked finds a program in a folder of unpacked packages. It may want a newer
// C library than the system's, so it runs with the loader that was unpacked
// with it.
func unpacked(root, program string, libraries ...string) (path string, argv []string, ok bool) {
	path = filepath.Join(root, program)
	loaders, err := filepath.Glob(filepath.Join(root, "usr/lib/*/ld-linux-*.so.*"))
	if _, statErr := os.Stat(path); statErr != nil || err != nil || len(loaders) == 0 {
		return "", nil, false
	}
	search := strings.Join(append([]string{filepath.Dir(loaders[0])}, libraries...), ":")
	return path, []string{loaders[0], "--library-path", search, path}, true
}

// notFetched adds to err why setup did not get the kind.
func notFetched(k Kind, err error) error {
	if reason, readErr := os.ReadFile(SidReason(k)); readErr == nil {
		return fmt.Errorf("%w; setup: %s", err, strings.TrimSpace(string(reason)))
	}
	return fmt.Errorf("%w; setup did not fetch it", err)
}
