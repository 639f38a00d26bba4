// Package unknowns has no code, only tests: what comes of a call whose answer never
// came. A proxy (package wireproxy) in front of real servers breaks exchanges at
// chosen points, before the effect, after it and in between; the call is repeated
// as core repeats it, and then the answer must be what the database says, with the
// effect there once.
//
// Triggers count the changes of each row, so that an effect which came twice, or
// late, is seen even where the row looks right in the end.
package unknowns
