package sqlmocked

import (
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/dueclaim/dueclaim/conformance"
)

// Play returns a database that expects exactly these steps, in this order, on
// whatever connections. It closes it when the test is over; whether the steps
// were met is the caller's to check, by Err. It may be called from any goroutine.
func Play(t *testing.T, steps []conformance.SQLStep) conformance.SQLPlay {
	p := &play{steps: steps, bound: map[string]driver.Value{}}
	dsn := rand.Text() // sqlmock keeps its mocks in a table of all tests
	opener, mock, err := sqlmock.NewWithDSN(dsn, sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(p.match)), sqlmock.ValueConverterOption(asGiven{}))
	if err != nil {
		t.Fatalf("sqlmocked: %v", err)
	}
	// sqlmock forgets a mock whose last connection is closed, as database/sql
	// does after driver.ErrBadConn: this one stays open behind all.
	inner, err := opener.Driver().Open(dsn)
	if err != nil {
		t.Fatalf("sqlmocked: %v", err)
	}
	p.mock = mock
	for _, step := range steps {
		p.expect(step)
	}
	p.db = sql.OpenDB(connector{p, inner, opener.Driver()})
	t.Cleanup(func() {
		_ = p.db.Close()
		_ = inner.Close() // sqlmock takes it for an unexpected call
		_ = opener.Close()
	})
	return p
}

// play follows what is asked.
type play struct {
	db    *sql.DB
	mock  sqlmock.Sqlmock
	steps []conformance.SQLStep

	mu    sync.Mutex
	asked int
	wrong error // the first thing that wasn't in the script
	bound map[string]driver.Value
}

// DB returns the database.
func (p *play) DB() *sql.DB { return p.db }

// Asked returns how many steps were asked for.
func (p *play) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Err says what was asked that isn't in the script, or is missing.
func (p *play) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong != nil {
		return p.wrong
	}
	if err := p.mock.ExpectationsWereMet(); err != nil {
		return fmt.Errorf("after %d of %d steps nothing more was asked; next in the script: %v", p.asked, len(p.steps), p.steps[min(p.asked, len(p.steps)-1)])
	}
	return nil
}

// expect tells sqlmock about a step.
func (p *play) expect(step conformance.SQLStep) {
	now := step.Err
	if step.AfterRows {
		now = nil
	}
	switch step.Do {
	case conformance.SQLQuery:
		p.mock.ExpectQuery(step.Text).WithArgs(p.arguments(step.Args)...).WillReturnError(now).WillReturnRows(p.rows(step))
	case conformance.SQLExec:
		p.mock.ExpectExec(step.Text).WithArgs(p.arguments(step.Args)...).WillReturnError(now).WillReturnResult(sqlmock.NewResult(0, step.Affected))
	case conformance.SQLBegin:
		p.mock.ExpectBegin().WillReturnError(now)
	case conformance.SQLCommit:
		p.mock.ExpectCommit().WillReturnError(now)
	case conformance.SQLRollback:
		p.mock.ExpectRollback().WillReturnError(now)
	}
}

// rows makes the answer. A row too many carries the error behind the last one.
func (p *play) rows(step conformance.SQLStep) *sqlmock.Rows {
	columns := step.Columns
	if columns == nil {
		n := 1
		if len(step.Rows) > 0 {
			n = len(step.Rows[0])
		}
		for i := range n {
			columns = append(columns, fmt.Sprintf("c%d", i+1))
		}
	}
	rows := p.mock.NewRows(columns).AddRows(step.Rows...)
	if step.AfterRows && step.Err != nil {
		rows.AddRow(make([]driver.Value, len(columns))...).RowError(len(step.Rows), step.Err)
	}
	return rows
}

// note counts a step that was asked for and remembers one that isn't in the
// script. err is what sqlmock answered.
func (p *play) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.asked
	p.asked++
	if err == nil || p.wrong != nil {
		return
	}
	if i < len(p.steps) && p.steps[i].Err != nil && errors.Is(err, p.steps[i].Err) {
		return // as scripted
	}
	p.wrong = fmt.Errorf("step %d: %w", i+1, err)
}

// asGiven leaves values as they are: what types a driver takes is its own affair.
type asGiven struct{}

// ConvertValue implements driver.ValueConverter.
func (asGiven) ConvertValue(v any) (driver.Value, error) { return v, nil }
