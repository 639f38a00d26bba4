package server

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

func redisRecipe() recipe {
	return likeRedis(func() (Binary, error) {
		path, err := lookPath("redis-server", "valkey-server")
		return Binary{Kind: Redis, Path: path, Argv: []string{path}}, err
	})
}

func valkeyRecipe() recipe {
	return likeRedis(func() (Binary, error) {
		if path, run, ok := unpacked(SidRoot(Valkey), "usr/bin/valkey-server"); ok {
			return Binary{Kind: Valkey, Path: path, Argv: run}, nil
		}
		path, err := lookPath("valkey-server")
		if err != nil {
			return Binary{}, notFetched(Valkey, err)
		}
		return Binary{Kind: Valkey, Path: path, Argv: []string{path}}, nil
	})
}

func likeRedis(find func() (Binary, error)) recipe {
	return recipe{
		find: find,
		argv: func(b Binary, l launch) ([]string, error) {
			args := append(b.Argv, "--port", strconv.Itoa(l.port), "--bind", "127.0.0.1", "--dir", l.dir, "--save", "")
			if l.Durable {
				return append(args, "--appendonly", "yes", "--appendfsync", "always"), nil
			}
			return append(args, "--appendonly", "no"), nil
		},
		ready:   pingRedis,
		endWith: "KILL",
		scheme:  "redis",
	}
}

// pingRedis is nil when the server answers, and has loaded its data.
func pingRedis(addr string) error {
	conn, err := dialReady(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "+PONG") {
		err = fmt.Errorf("PING answered %q", line)
	}
	return err
}

// dialReady connects for one question, which must be answered within two seconds.
func dialReady(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(2 * time.Second))
}
