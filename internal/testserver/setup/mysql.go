package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// fetchMySQL gets Oracle's MySQL out of Debian sid and unpacks it beside the
// system; nothing is installed. It never fails the run: why it could not be
// had is kept for the tests' "NOT tested" line.
func fetchMySQL(ctx context.Context) {
	err := unpackMySQL(ctx, server.MySQLRoot())
	if err == nil {
		_ = os.Remove(server.MySQLReason()) // usually there is none
		return
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	fmt.Printf("setup: Oracle's MySQL can't be had: %v\n", err)
	if err := os.MkdirAll(server.CacheDir(), 0o755); err == nil {
		err = os.WriteFile(server.MySQLReason(), []byte(reason), 0o644)
		if err != nil {
			fmt.Printf("setup: %v\n", err)
		}
	}
}

const debianKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// unpackMySQL works in an apt state of its own, so that it neither needs root
// nor touches the system's. sid moves, so no version is pinned.
func unpackMySQL(ctx context.Context, root string) error {
	mirror, err := debianMirror()
	if err != nil {
		return err
	}
	work := filepath.Join(server.CacheDir(), "aptsid")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	debs := filepath.Join(work, "debs")
	for _, dir := range []string{"lists/partial", "cache/archives/partial", "debs/partial", "empty"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return err
		}
	}
	conf := filepath.Join(work, "apt.conf")
	settings := strings.ReplaceAll(`Dir::State "W"; Dir::State::lists "W/lists"; Dir::State::status "W/status";
Dir::Cache "W/cache"; Dir::Cache::archives "W/debs/";
Dir::Etc::sourcelist "W/sources.list"; Dir::Etc::sourceparts "W/empty"; Dir::Etc::preferencesparts "W/empty";
Acquire::Languages "none"; Debug::NoLocking "true"; APT::Sandbox::User "";
`, "W", work)
	err = errors.Join(
		os.WriteFile(filepath.Join(work, "status"), nil, 0o644),
		os.WriteFile(filepath.Join(work, "sources.list"), fmt.Appendf(nil, "deb [signed-by=%s] %s sid main\n", debianKeys, mirror), 0o644),
		os.WriteFile(conf, []byte(settings), 0o644))
	if err != nil {
		return err
	}
	env := []string{"APT_CONFIG=" + conf, "DEBIAN_FRONTEND=noninteractive"}
	if err := step(ctx, "fetch the package list of Debian sid", env, "apt-get", append(aptArgs("update"), "--error-on=any")...); err != nil {
		return err
	}
	args := append(aptArgs("install"), "--no-install-recommends", "--download-only", "mysql-server-core")
	if err := step(ctx, "fetch mysql-server-core and its libraries", env, "apt-get", args...); err != nil {
		return err
	}
	// A name of its own until it is whole.
	half := root + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range packages {
		if strings.Contains(filepath.Base(deb), "perl") { // only its scripts want it
			continue
		}
		if err := quiet(ctx, "dpkg-deb", "-x", deb, half); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	return os.Rename(half, root)
}

// archive matches the first address in an apt source of either format.
var archive = regexp.MustCompile(`(?m)^\s*(?:deb\s+(?:\[[^\]]*\]\s+)?|URIs:\s*)(\S+://\S+|/\S+|copy:\S+|file:\S+)`)

// debianMirror is the archive that this machine itself takes Debian from.
func debianMirror() (string, error) {
	if _, err := os.Stat(debianKeys); err != nil {
		return "", errors.New("not on Debian (no Debian archive keys here)")
	}
	files, err := filepath.Glob("/etc/apt/sources.list.d/*")
	if err != nil {
		return "", err
	}
	for _, file := range append([]string{"/etc/apt/sources.list"}, files...) {
		if ext := filepath.Ext(file); ext != ".list" && ext != ".sources" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue // not there, or not ours to read
		}
		if found := firstDebian(string(text)); found != "" {
			return found, nil
		}
	}
	return "", errors.New("no Debian archive in this machine's apt sources")
}

// firstDebian is the first address of the main archive in the text of an apt
// source, "" where there is none.
func firstDebian(text string) string {
	for _, match := range archive.FindAllStringSubmatch(text, -1) {
		address := strings.TrimSuffix(match[1], "/")
		if strings.HasSuffix(address, "/debian") {
			return address
		}
	}
	return ""
}
