package tabletest

// Why a case of the suite fails in a mode, by the mode's promises.
const (
	newDue = "a row that is given back is due at the new time, which is then its due time" // promise release-due
)

func weakerFull() map[string]string {
	return map[string]string{"settle/released": newDue}
}

func weakerBase() map[string]string { return map[string]string{} }

func weakerUpdated() map[string]string { return map[string]string{} }

func weakerTransition() map[string]string { return map[string]string{} }
