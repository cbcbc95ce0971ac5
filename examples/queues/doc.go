// Package queues holds the few lines that put the work of queues under limits: middleware for River, asynq and Watermill,
// and functions on worker/lease for PostgreSQL, Redis Streams, SQS and Kubernetes. docs/scaling.md explains them. Copy
// them; the package itself is never released. Its tests on real servers are run by "make queues".
package queues
