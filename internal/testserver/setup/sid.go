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

// sidPackages are what Debian's stable release doesn't have.
var sidPackages = map[server.Kind]string{
	server.MySQL:  "mysql-server-core", // Oracle's
	server.Valkey: "valkey-server",
}

// fetchFromSid gets missing servers out of Debian sid and unpacks them beside
// the system; nothing is installed. It never fails the run: why one could not
// be had is kept for the tests' "NOT tested" line.
func fetchFromSid(ctx context.Context) {
	var kinds []server.Kind
	for _, k := range server.Kinds() {
		if _, ok := sidPackages[k]; ok && wanted(k) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return
	}
	sid, err := openSid(ctx)
	defer sid.close()
	for _, k := range kinds {
		failed := err
		if failed == nil {
			failed = sid.unpack(ctx, sidPackages[k], server.SidRoot(k))
		}
		keepReason(k, failed)
	}
}

// keepReason writes down why a kind can't be had, or that it can.
func keepReason(k server.Kind, failed error) {
	if failed == nil {
		_ = os.Remove(server.SidReason(k)) // usually there is none
		return
	}
	reason, _, _ := strings.Cut(failed.Error(), "\n")
	fmt.Printf("setup: %s can't be had: %v\n", k, failed)
	err := os.MkdirAll(server.CacheDir(), 0o755)
	if err == nil {
		err = os.WriteFile(server.SidReason(k), []byte(reason), 0o644)
	}
	if err != nil {
		fmt.Printf("setup: %v\n", err)
	}
}

const debianKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// sid is an apt state of its own, so that it neither needs root nor touches the
// system's. sid moves, so no version is pinned.
type sid struct {
	work, debs string
	env        []string
}

func (s *sid) close() { _ = os.RemoveAll(s.work) }

// openSid fetches the list of packages.
func openSid(ctx context.Context) (*sid, error) {
	work := filepath.Join(server.CacheDir(), "aptsid")
	s := &sid{work: work, debs: filepath.Join(work, "debs")}
	mirror, err := debianMirror()
	if err != nil {
		return s, err
	}
	if err := os.RemoveAll(work); err != nil {
		return s, err
	}
	for _, dir := range []string{"lists/partial", "cache/archives/partial", "debs/partial", "empty"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return s, err
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
		return s, err
	}
	s.env = []string{"APT_CONFIG=" + conf, "DEBIAN_FRONTEND=noninteractive"}
	return s, step(ctx, "fetch the package list of Debian sid", s.env, "apt-get", append(aptArgs("update"), "--error-on=any")...)
}

// unpack fetches a package and all that it needs, and unpacks it as root.
func (s *sid) unpack(ctx context.Context, name, root string) error {
	args := append(aptArgs("install"), "--no-install-recommends", "--download-only", name)
	if err := step(ctx, "fetch "+name+" and its libraries", s.env, "apt-get", args...); err != nil {
		return err
	}
	// A name of its own until it is whole.
	half := root + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(s.debs, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range packages {
		base := filepath.Base(deb)
		if !strings.Contains(base, "perl") && !strings.HasPrefix(base, "systemd_") { // only scripts and services want them
			if err := quiet(ctx, "dpkg-deb", "-x", deb, half); err != nil {
				return err
			}
		}
		if err := os.Remove(deb); err != nil { // the next package gets what it needs by itself
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
