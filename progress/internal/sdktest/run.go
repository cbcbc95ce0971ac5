package sdktest

import (
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
		{"Results", results}, {"Stops", stops}, {"Deaf", ignoringTools}, {"Shutdown", shutdown}, {"Bounded", bounded}, {"Observes", observes}, {"Failures", failures},
		{"Limits", limits}, {"NearLimit", nearLimit}, {"Intervals", intervals}, {"Silence", silence},
		{"Tokens", tokens}, {"Many", manyCalls}, {"LastDetail", lastDetail}, {"IDs", ids}, {"Refuses", refuses}, {"Sessions", sessions}, {"Shared", sharedResult},
		{"BecomesTask", becomesTask}, {"PlainCalls", plainCalls}, {"TaskEnds", taskEnds}, {"TaskCancel", taskCancel}, {"TaskErrors", taskErrors},
		{"TasksDeclared", tasksDeclared}, {"TaskOfAnUnknownVersion", taskOfAnUnknownVersion}, {"TTL", ttl}, {"TaskOwners", taskOwners}, {"TaskDisconnects", taskDisconnects}, {"TaskProgress", taskProgress},
		{"TaskAsks", taskAsks}, {"TasksShutdown", tasksShutdown}, {"ManyTasks", manyTasks},
		{"Continuation", continuation}, {"ContinuedEnds", continuedEnds}, {"ContinuedSession", continuedSession}, {"BesideTasks", besideTasks},
		{"SessionOfAnOpenCall", sessionOfAnOpenCall}, {"AskedBefore", askedBefore},
		{"Declared", declared}, {"Budget", budget}, {"BudgetOfTasks", budgetOfTasks}, {"BudgetSent", budgetSent}, {"Chain", chain}, {"Hosts", knownHosts}, {"Questions", questions}, {"Samples", samples},
		{"ClientLimits", clientLimits}, {"WhichLimits", whichLimits}, {"GivenUp", givenUp}, {"OwnToken", ownToken}, {"SlowHandler", slowHandler},
		{"ManyRequests", manyRequests}, {"Unruly", unruly}, {"ClientLog", clientLog},
		{"ConnectTries", connectTries}, {"ConnectPhases", connectPhases}, {"ConnectOutlasts", connectOutlasts},
		{"UseDeclared", useDeclared}, {"DeclaredMethods", declaredMethods}, {"Retry", retry}, {"RetryEnds", retryEnds}, {"RetryToolCall", retryToolCall},
		{"Idempotency", idempotency}, {"FollowStatus", followStatus}, {"Follow", follow}, {"FollowStore", followStore}, {"FollowCancel", followCancel},
		{"FollowHTTP", followHTTP}, {"FollowOutage", followOutage}, {"Random", random}, {"Streams", streams},
	} {
		t.Run(b.name, func(t *testing.T) { b.test(t, sdk) })
	}
}

// over runs a test for each way whose name begins with one of the prefixes, or for all ways without prefixes. Each test
// has a new server with the Config that c returns.
func over(t *testing.T, sdk SDK, c func() Config, test func(t *testing.T, p *Peer), prefixes ...string) {
	t.Helper()
	for _, w := range append(Ways[:len(Ways):len(Ways)], sdk.Ways...) {
		wanted := len(prefixes) == 0
		for _, prefix := range prefixes {
			wanted = wanted || strings.HasPrefix(w.Name, prefix)
		}
		if wanted {
			t.Run(w.Name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					p := connect(t, sdk.NewServer(c()), w)
					defer p.close()
					test(t, p)
				})
			})
		}
	}
}

// bubble calls synctest.Test. It panics if the test takes longer than a minute of real time, for example because a
// goroutine that waits for a mutex keeps the simulated time from advancing.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	over := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
	defer over.Stop()
	synctest.Test(t, test)
}
