package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/display"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// table is the name of the tasks' table. On a server it stays, empty, after a run.
const table = "dueclaim_orders"

// demo is one run of the example.
type demo struct {
	settings
	db    *database
	shop  *shop
	team  *workers.Team
	began time.Time
	day   time.Duration // real time from the start until the last order's time is over
	show  *display.Progress
}

// run plays the day once.
func run(ctx context.Context, s settings) (rep report, err error) {
	d := &demo{settings: s, show: display.New(os.Stdout), began: time.Now()}
	orders, err := readOrders(ordersCSV, s.orders)
	if err != nil {
		return rep, err
	}
	folder, err := os.MkdirTemp("", "orders-")
	if err != nil {
		return rep, err
	}
	defer os.RemoveAll(folder)

	choice := parts.Choice{
		Index: s.index, Store: s.store, Table: table,
		Queue: "run-" + strings.ToLower(rand.Text()[:10]),
	}.WithFile(folder)
	d.db, err = openDatabase(ctx, choice)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, d.db.Close()) }()
	if err := d.db.create(ctx); err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, d.db.drop(context.WithoutCancel(ctx))) }()
	stock, err := d.fillStock(ctx, orders)
	if err != nil {
		return rep, err
	}
	d.show.Say(fmt.Sprintf("orders: %d orders at %v times the speed, %d workers; %v", len(orders), s.speed, s.workers, choice))

	d.team, err = workers.StartTeam(s.workers, func(string) instructions {
		return instructions{Parts: choice, Lease: s.lease}
	})
	defer func() { err = errors.Join(err, d.team.Stop()) }()
	if err != nil {
		return rep, err
	}
	if err := d.play(ctx, orders); err != nil {
		return rep, err
	}
	if err := d.team.Stop(); err != nil {
		return rep, err
	}
	b, err := d.db.readBooks(ctx)
	if err != nil {
		return rep, err
	}
	rep = newReport(b, d.shop, orders, stock)
	rep.victim, rep.took = d.team.Killed(), time.Since(d.began)
	rep.day = orders[len(orders)-1].placed.Add(allowed).Sub(orders[0].placed)
	return rep, nil
}

// fillStock puts into the shop what all orders together ask for, and a little
// more, and returns it.
func (d *demo) fillStock(ctx context.Context, orders []order) (map[string]int, error) {
	stock := map[string]int{}
	for _, o := range orders {
		for _, it := range o.items {
			stock[it.sku] += it.quantity
		}
	}
	for _, sku := range sortedKeys(stock) {
		stock[sku] += 10
		if _, err := d.db.DB.ExecContext(ctx, d.db.query("INSERT INTO shop_stock (sku, moved) VALUES (?, ?)"), sku, stock[sku]); err != nil {
			return nil, fmt.Errorf("fill the stock: %w", err)
		}
	}
	return stock, nil
}

// play opens the shop and returns when its day is over and all tasks are done, or
// nothing has happened for too long.
func (d *demo) play(ctx context.Context, orders []order) error {
	producer, err := core.NewProducer(d.db.Index, d.db.Store, core.ProducerOptions{})
	if err != nil {
		return err
	}
	call, err := producer.NewCall(ctx) // Call.Now is the time by the store's clock
	if err != nil {
		return err
	}
	const lead = time.Second // for the workers to start
	clock := shopClock{speed: d.speed, open: orders[0].placed, local: time.Now().Add(lead), store: call.Now.Add(lead)}
	d.shop = &shop{db: d.db, producer: producer, clock: clock, accepted: map[string]bool{}}
	d.day = lead + clock.real(orders[len(orders)-1].placed.Add(allowed).Sub(clock.open))

	ctx, cancel := context.WithCancel(ctx)
	closed := make(chan error, 1)
	var shop sync.WaitGroup
	shop.Go(func() { closed <- d.shop.day(ctx, orders) })
	err = d.watch(ctx, closed)
	cancel()
	shop.Wait()
	return err
}

// watch shows how it goes and kills a worker half way. closed tells that the shop
// has done its day, or why it couldn't.
func (d *demo) watch(ctx context.Context, closed chan error) error {
	defer d.show.Done()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	const takeOver, slack = 2 * time.Second, 10 * time.Second
	began, last, lastChange, open := time.Now(), -1, time.Now(), true
	for {
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case err := <-closed:
			closed <- err
			if err != nil {
				return err
			}
			closed, open = nil, false
			continue
		case <-tick.C:
		}
		counts, err := d.db.Counts(ctx)
		if err != nil {
			return err
		}
		live := counts[claim.Pending] + counts[claim.Running]
		if live != last {
			last, lastChange = live, time.Now()
		}
		elapsed := time.Since(began)
		d.show.Show(fmt.Sprintf("%s  orders open %d, paid %d, tasks done %d; %d workers",
			d.shop.clock.now().Format("15:04:05"), live, d.shop.paidSoFar(), counts[claim.DoneState], d.team.Len()))
		if !open && live == 0 {
			return nil
		}
		if !open && elapsed > d.day && time.Since(lastChange) > d.lease+takeOver+slack {
			return nil // the check tells what is missing
		}
		if err := d.team.Check(); err != nil {
			return err
		}
		if d.team.Killed() == "" && elapsed > d.day/2 {
			if err := d.killOne(ctx, elapsed > d.day); err != nil {
				return err
			}
		}
	}
}

// killOne kills the last worker in a moment when it has tasks, or in any case when
// there is no more time to wait for one.
func (d *demo) killOne(ctx context.Context, now bool) error {
	name := d.team.Last()
	n, err := d.db.RunningOf(ctx, name)
	if err != nil || n == 0 && !now {
		return err
	}
	d.team.KillLast()
	d.show.Say(fmt.Sprintf("%s  killed %s, which had %d tasks", d.shop.clock.now().Format("15:04:05"), name, n))
	return nil
}
