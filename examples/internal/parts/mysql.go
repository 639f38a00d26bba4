package parts

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/mysqlclaim"
)

// openMySQL opens a pool on MySQL or MariaDB.
func (p *Parts) openMySQL(ctx context.Context) error {
	config, err := mysqlConfig(p.choice.Store)
	if err != nil {
		return err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return errors.New("store mysql://…: the driver refuses its options")
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(40) // handlers come in bursts: keep their connections
	p.close = append(p.close, db.Close)
	if err := db.PingContext(ctx); err != nil {
		return noAnswer("mysql", config.Addr, err)
	}
	store, err := mysqlclaim.New(db, mysqlclaim.Options{Table: p.choice.Table, Queue: p.choice.Queue})
	if err != nil {
		return err
	}
	p.Store, p.DB, p.quote = store, db, '`'
	p.table = func(_ context.Context, def claim.Table) (Table, error) { return mysqlclaim.NewTable(db, def) }
	return nil
}

// mysqlConfig turns a mysql:// URL, which the driver doesn't know, into the
// driver's own form. The URL's query holds the driver's parameters.
func mysqlConfig(text string) (*mysql.Config, error) {
	u, err := serverURL(text, "mysql")
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	if u.RawQuery != "" {
		if config, err = mysql.ParseDSN("/?" + u.RawQuery); err != nil {
			return nil, errors.New("store mysql://…: the driver doesn't know its options")
		}
	}
	// Whatever the server's zone: what NOW() and a time.Time write is in UTC.
	config.Loc = time.UTC
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["time_zone"] = "'+00:00'"
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", u.Host
	if u.Port() == "" {
		config.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	config.DBName = strings.TrimPrefix(u.Path, "/")
	return config, nil
}
