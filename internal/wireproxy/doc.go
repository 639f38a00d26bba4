// Package wireproxy is a way to a real server that a test can break at exact
// points: a TCP proxy that knows as much of the protocols of MySQL, Postgres and
// Redis as it takes to say where a request ends and when its reply is whole.
//
//	p := wireproxy.New(t, wireproxy.MySQL, addr)
//	db := open(p.Addr())
//	p.Arm(wireproxy.Fault{Cut: wireproxy.EffectThenCut, Needle: "UPDATE"})
//	_, err := db.Exec("UPDATE …") // it took effect, and the client can't know
//	p.Injected()                  // EffectThenCut: 1
//
// A line that is cut at any byte (package line) shows that a client survives; only
// one that is cut at a chosen step shows what a lost reply does to an effect that
// has happened, or that happens after the client has given up.
//
// An exchange is what a client sends before it needs an answer, and the answer: a
// command of MySQL, the messages of Postgres up to a Sync or one simple query, a
// command of Redis. Each is passed on when the one before is answered, so that a
// pipeline keeps its order and loses its speed. Logins, and what a client library
// sends by itself right after, pass untouched. What is prepared is known by its
// text: a Needle finds it in each execution.
//
// There is no TLS and no compression (a client that asks for TLS hears that the
// server has none), no COPY and no LOCAL INFILE.
package wireproxy
