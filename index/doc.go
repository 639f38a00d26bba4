// Package index has building blocks for any [core.TimeIndex]. They know the
// interface alone.
//
// [Failover] goes on from a second index, usually a heap in the process, while the
// first one is away.
package index
