package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/display"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// demo is one run of the example.
type demo struct {
	settings
	choice parts.Choice
	db     *database
	table  parts.Table
	shop   *shop
	team   *workers.Team
	heard  *ledger
	clock  shopClock
	began  time.Time
	length time.Duration // real time from the opening until the last order's time is up
	show   *display.Progress
}

// run plays the orders once.
func run(ctx context.Context, s settings) (rep report, err error) {
	d := &demo{settings: s, show: display.New(os.Stdout), heard: newLedger(), began: time.Now()}
	orders, err := readOrders(ordersCSV, s.orders)
	if err != nil {
		return rep, err
	}
	folder, err := os.MkdirTemp("", "orders-")
	if err != nil {
		return rep, err
	}
	defer os.RemoveAll(folder)

	d.choice = parts.Choice{
		Index: s.index, Store: s.store, Queue: "run_" + strings.ToLower(rand.Text()[:10]),
	}.WithFile(folder)
	d.db, err = openDatabase(ctx, d.choice)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, d.db.Close()) }()
	defer func() { err = errors.Join(err, d.db.drop(context.WithoutCancel(ctx))) }()
	if err := d.db.create(ctx); err != nil {
		return rep, err
	}
	d.show.Say(fmt.Sprintf("orders: %d orders at %v times the speed, %d workers, mode %s; %v", len(orders), s.speed, s.workers, s.mode, d.choice))
	d.clock = shopClock{Speed: s.speed, Open: orders[0].placed}
	d.table, err = d.db.prepare(ctx, s.mode, d.clock.delay(), s.lease, d.show.Say)
	if err != nil {
		return rep, err
	}
	stock, err := d.fillStock(ctx, orders)
	if err != nil {
		return rep, err
	}

	d.team, err = workers.StartTeamHearing(s.workers, func(string) instructions { return d.instructions() }, d.heard.hear)
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
	b, err := d.db.readBooks(ctx, d.clock.delay())
	if err != nil {
		return rep, err
	}
	rep = newReport(b, d.heard, d.shop.forgot, orders, stock)
	rep.day, rep.took = orders[len(orders)-1].placed.Add(allowed).Sub(orders[0].placed), time.Since(d.began)
	return rep, nil
}

func (d *demo) instructions() instructions {
	return instructions{Parts: d.choice, Mode: d.mode, Lease: d.lease, Delay: d.clock.delay(), Clock: d.clock, Orders: d.orders}
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
	for _, sku := range slices.Sorted(maps.Keys(stock)) {
		stock[sku] += 10
		if _, err := d.db.DB.ExecContext(ctx, d.db.query("INSERT INTO shop_stock (sku, moved) VALUES (?, ?)"), sku, stock[sku]); err != nil {
			return nil, fmt.Errorf("fill the stock: %w", err)
		}
	}
	return stock, nil
}

// play opens the shop and returns when its day is over and no order is open, or
// nothing has happened for too long.
func (d *demo) play(ctx context.Context, orders []order) error {
	producer, err := core.NewProducer(d.db.Index, d.table, core.ProducerOptions{})
	if err != nil {
		return err
	}
	const lead = time.Second // for the processes to start
	if err := d.clock.start(ctx, d.table, lead); err != nil {
		return err
	}
	d.shop = &shop{db: d.db, producer: producer, clock: d.clock, forgot: map[string]bool{}}
	d.length = lead + d.clock.due(orders[len(orders)-1]).Sub(d.clock.Store)

	customers, err := workers.StartHearing(customersName, d.instructions(), func(n note) { d.heard.hear(customersName, n) })
	if err != nil {
		return err
	}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var shopErr, customersErr error
	all.Go(func() {
		if shopErr = d.shop.takeOrders(playing, orders); shopErr != nil {
			stop()
		}
	})
	all.Go(func() { // returns when the customers have nothing left to do
		select {
		case <-customers.Ended():
		case <-playing.Done():
		}
		if customersErr = customers.Stop(10 * time.Second); customersErr != nil {
			stop()
		}
	})
	closed := make(chan struct{})
	go func() { all.Wait(); close(closed) }()
	err = d.watch(playing, closed)
	stop()
	<-closed
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case shopErr != nil || customersErr != nil:
		return errors.Join(shopErr, customersErr)
	default:
		return err
	}
}
