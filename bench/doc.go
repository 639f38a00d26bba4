// Command bench measures dueclaim beside its peers, on servers that it starts
// itself with durable settings: the same workloads on each, alternating, several
// rounds in one run. It prints medians, spread and ratios, and with -write it writes
// benchmarks.md, its pictures, and the figures they come from.
//
// It is a module of its own, so that the library's go.mod stays free of the peers.
package main
