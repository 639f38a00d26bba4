package sqliteclaim

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// direct is a connection to the file through the driver itself. One call is made at
// a time, so the locks and conversions of database/sql have nothing to do here; and
// each statement is prepared once.
//
// Between BEGIN and COMMIT nothing waits for a lock, so the statements run without
// ctx, which spares the driver a goroutine for each; ctx is looked at before each.
type direct struct {
	conn       driver.Conn
	statements map[string]driverStatement
	args       []driver.NamedValue
	values     []driver.Value
	broken     bool
}

type driverStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// maxStatements bounds what is kept: a Store has some twenty statements.
const maxStatements = 64

func newDirect(ctx context.Context, c driver.Connector) (*direct, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &direct{conn: conn, statements: map[string]driverStatement{}}, nil
}

func (d *direct) statement(text string) (driverStatement, error) {
	if s, ok := d.statements[text]; ok {
		return s, nil
	}
	if len(d.statements) >= maxStatements {
		if err := d.forget(); err != nil {
			return nil, err
		}
	}
	prepared, err := d.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(driverStatement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks methods with a context", prepared), prepared.Close())
	}
	d.statements[text] = s
	return s, nil
}

// forget closes the statements.
func (d *direct) forget() error {
	var errs []error
	for text, s := range d.statements {
		errs = append(errs, s.Close())
		delete(d.statements, text)
	}
	return errors.Join(errs...)
}

// bind returns args as the driver wants them, until the next call.
func (d *direct) bind(args []any) ([]driver.NamedValue, error) {
	d.args = d.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case nil, string, int64, []byte:
		case int:
			a = int64(v)
		default:
			var err error
			if a, err = driver.DefaultParameterConverter.ConvertValue(a); err != nil {
				return nil, err
			}
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return d.args, nil
}

// start prepares a statement and its arguments.
func (d *direct) start(ctx context.Context, text string, args []any) (driverStatement, []driver.NamedValue, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s, err := d.statement(text)
	if err != nil {
		return nil, nil, err
	}
	bound, err := d.bind(args)
	return s, bound, err
}

func (d *direct) exec(ctx context.Context, text string, args ...any) (int64, error) {
	s, bound, err := d.start(ctx, text, args)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(context.WithoutCancel(ctx), bound)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (d *direct) query(ctx context.Context, text string, row func(scanner) error, args ...any) (err error) {
	s, bound, err := d.start(ctx, text, args)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.WithoutCancel(ctx), bound)
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	n := len(rows.Columns())
	if n > len(d.values) {
		d.values = make([]driver.Value, n)
	}
	values := d.values[:n]
	defer clear(values)
	scan := func(dest ...any) error { return assignAll(dest, values) }
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := row(scan); err != nil {
			return err
		}
	}
}

func assignAll(dest []any, values []driver.Value) error {
	if len(dest) != len(values) {
		return fmt.Errorf("%d variables for %d columns", len(dest), len(values))
	}
	for i := range dest {
		if !assign(dest[i], values[i]) {
			return fmt.Errorf("column %d is %T, for a %T", i, values[i], dest[i])
		}
	}
	return nil
}

// assign stores a column's value where dest points to. The driver makes each value
// anew, so none is copied.
func assign(dest any, value driver.Value) (ok bool) {
	switch dest := dest.(type) {
	case *string:
		*dest, ok = value.(string)
	case *int64:
		*dest, ok = value.(int64)
	case *int:
		var n int64
		n, ok = value.(int64)
		*dest = int(n)
	case *[]byte:
		*dest, ok = value.([]byte)
		ok = ok || value == nil
	case *any:
		*dest, ok = value, true
	}
	return ok
}

func (d *direct) begin(context.Context) error { return d.run("BEGIN IMMEDIATE") }

func (d *direct) commit(context.Context) error { return d.run("COMMIT") }

func (d *direct) rollback(context.Context) {
	d.broken = !rolledBack(d.run)
}

func (d *direct) run(text string) error {
	_, err := d.exec(context.Background(), text)
	return err
}

// release closes the connection where its state is unknown; the next one is new.
func (d *direct) release() (kept bool) {
	if d.broken {
		_ = d.close()
	}
	return !d.broken
}

func (d *direct) close() error { return errors.Join(d.forget(), d.conn.Close()) }
