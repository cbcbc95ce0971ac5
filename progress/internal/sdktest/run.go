package sdktest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs all tests of this package with an SDK.
func Run(t *testing.T, sdk SDK) {
	for _, b := range []struct {
		name string
		test func(*testing.T, SDK)
	}{
		{"Results", results}, {"Stops", stops}, {"Deaf", ignoringTools}, {"Shutdown", shutdown}, {"Bounded", bounded}, {"Observes", observes},
		{"Limits", limits}, {"Intervals", intervals}, {"Silence", silence},
		{"Tokens", tokens}, {"Many", manyCalls}, {"LastDetail", lastDetail}, {"IDs", ids}, {"Refuses", refuses}, {"Sessions", sessions},
		{"BecomesTask", becomesTask}, {"PlainCalls", plainCalls}, {"TaskEnds", taskEnds}, {"TaskCancel", taskCancel}, {"TaskErrors", taskErrors},
		{"TasksDeclared", tasksDeclared}, {"TaskOfAnUnknownVersion", taskOfAnUnknownVersion}, {"TaskOwners", taskOwners}, {"TaskDisconnects", taskDisconnects}, {"TaskProgress", taskProgress},
		{"TaskAsks", taskAsks}, {"TasksShutdown", tasksShutdown}, {"ManyTasks", manyTasks},
		{"Continuation", continuation}, {"ContinuedEnds", continuedEnds}, {"ContinuedSession", continuedSession}, {"BesideTasks", besideTasks},
		{"SessionOfAnOpenCall", sessionOfAnOpenCall}, {"AskedBefore", askedBefore},
		{"Declared", declared}, {"Budget", budget}, {"BudgetOfTasks", budgetOfTasks}, {"BudgetSent", budgetSent}, {"Chain", chain}, {"Hosts", knownHosts}, {"Questions", questions},
		{"RequestEnds", requestEnds}, {"WhichLimits", whichLimits}, {"OwnToken", ownToken}, {"SlowHandler", slowHandler},
		{"ManyRequests", manyRequests}, {"Unruly", unruly},
		{"ConnectTries", connectTries}, {"ConnectPhases", connectPhases}, {"ConnectOutlasts", connectOutlasts},
		{"UseDeclared", useDeclared}, {"DeclaredMethods", declaredMethods}, {"Retry", retry}, {"RetryToolCall", retryToolCall},
		{"Idempotency", idempotency}, {"FollowStatus", followStatus}, {"FollowManyTools", followManyTools}, {"Follow", follow}, {"FollowStore", followStore}, {"FollowCancel", followCancel},
		{"FollowOutage", followOutage}, {"Random", random}, {"Streams", streams},
	} {
		t.Run(b.name, func(t *testing.T) { b.test(t, sdk) })
	}
}

// over runs a test for each way whose name begins with one of the prefixes, or for all ways without prefixes. Each test
// has a new server with the Config that c returns.
func over(t *testing.T, sdk SDK, c func() Config, test func(t *testing.T, p *Peer), prefixes ...string) {
	t.Helper()
	for _, w := range sdk.ways() {
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(w.Name, prefix) }) {
			Bubble(t, w.Name, func(t *testing.T) { test(t, Dial(t, sdk.NewServer(c()), w)) })
		}
	}
}

// both runs a test with each version of the protocol.
func both(t *testing.T, name string, test func(t *testing.T, version string)) {
	t.Helper()
	for _, version := range []string{Old, New} {
		Bubble(t, strings.TrimSpace(name+" "+version), func(t *testing.T) { test(t, version) })
	}
}

// Bubble runs a subtest in simulated time. It panics if the subtest takes longer than a minute of real time.
func Bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// bubble calls synctest.Test. It panics if the test takes longer than a minute of real time, for example because a
// goroutine that waits for a mutex keeps the simulated time from advancing.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	over := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
	defer over.Stop()
	synctest.Test(t, test)
}
