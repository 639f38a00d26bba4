package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
)

// openOrders returns the claim store on the shop's orders.
func (d *database) openOrders(ctx context.Context, m mode, delay, lease time.Duration) (parts.Table, error) {
	return d.OpenTable(ctx, ordersTable(m, d.prefix+"orders", delay, lease))
}

// prepare makes the table of orders what the mode needs, which for mode full means
// to run what Suggest suggests, and shows what Verify finds.
func (d *database) prepare(ctx context.Context, m mode, delay, lease time.Duration, say func(string)) (parts.Table, error) {
	if m == full {
		asItIs, err := d.openOrders(ctx, status, delay, lease)
		if err != nil {
			return nil, err
		}
		statements, err := asItIs.Suggest(ctx)
		if err != nil {
			return nil, err
		}
		say("suggested, and done:")
		for _, s := range statements {
			say("  " + s)
			if _, err := d.DB.ExecContext(ctx, s); err != nil {
				return nil, fmt.Errorf("run what Suggest suggests: %w", err)
			}
		}
	}
	table, err := d.openOrders(ctx, m, delay, lease)
	if err != nil {
		return nil, err
	}
	findings, err := table.Verify(ctx)
	if err != nil {
		return nil, err
	}
	say("verify:")
	for _, f := range findings {
		say("  " + short(f))
	}
	if findings.Worst() == claim.Fault {
		return nil, errors.New("the table has a fault, see above")
	}
	return table, nil
}

// short is a finding in one line, without the remedy.
func short(f claim.Finding) string {
	const width = 150
	f.Mend = ""
	text := []rune(strings.ReplaceAll(f.String(), "\n", " "))
	if len(text) > width {
		text = append(text[:width-1], '…')
	}
	return string(text)
}
