package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// freePort returns a port of 127.0.0.1 that nobody listens on now. It lies
// below the range from which the system takes the client ends of connections:
// otherwise, while a server is being restarted, a client that tries to reach
// it could be given that very port and end up connected to itself.
func freePort() (int, error) {
	for range 100 {
		port := 15000 + rand.IntN(17000)
		listener, err := net.Listen("tcp", addrOf(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("server: no free port between 15000 and 32000 on 127.0.0.1")
}

func addrOf(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// listens says whether it is the process pid that listens on the port, and not
// another server that took the port at the same moment. Where the system
// doesn't tell (no /proc), it is believed.
func listens(pid, port int) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return true
	}
	local := fmt.Sprintf("0100007F:%04X", port)
	for line := range bytes.Lines(table) {
		fields := strings.Fields(string(line))
		if len(fields) < 10 || fields[1] != local || fields[3] != "0A" {
			continue
		}
		inode := "socket:[" + fields[9] + "]"
		open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			return true
		}
		for _, fd := range open {
			if link, err := os.Readlink(fd); err == nil && link == inode {
				return true
			}
		}
	}
	return false
}
