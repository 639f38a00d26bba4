package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// A Galera cluster freezes when two of its nodes are told to make a view at the same time
// (tables may be), and a named lock holds on one node only. So the view is the business of
// whoever has made the table, and where that was not seen to be done the nodes go one after
// the other.

// turn is how long a node waits for those before it.
const turn = 5 * time.Second

// makeTable makes the table, and tells whether it was this very statement that did.
func (s *Store) makeTable(ctx context.Context, c *sql.Conn) (made bool, err error) {
	if _, err := c.ExecContext(ctx, "SET SESSION sql_notes = 1"); err != nil {
		return false, err
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf(createTable, s.quoted)); err != nil {
		return false, err
	}
	made = true
	err = each(ctx, c, "SHOW WARNINGS", nil, func(rows *sql.Rows) error {
		var level, message string
		var code uint16
		err := rows.Scan(&level, &code, &message)
		made = made && code != errTableExists
		return err
	})
	return made, err
}

// awaitTurn returns at once on a server by itself; on a node of a cluster when the view is
// there, or it is this node's turn to make it.
func (s *Store) awaitTurn(ctx context.Context, c *sql.Conn) error {
	var clustered string
	place := 0
	if err := one(ctx, c, "SHOW VARIABLES LIKE 'wsrep_on'", nil, new(string), &clustered); err != nil || !strings.EqualFold(clustered, "ON") {
		return err
	}
	if err := one(ctx, c, "SHOW STATUS LIKE 'wsrep_local_index'", nil, new(string), &place); err != nil {
		return err
	}
	end := time.After(time.Duration(place+1) * turn)
	for {
		if found, err := s.look(ctx, c); err != nil || found.view {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-time.After(turn / 50):
		}
	}
}
