// Package queues holds functions to copy that run the work of queues under limits: middleware for River, asynq and
// Watermill, and workers with package worker/lease for PostgreSQL, Redis Streams, SQS and Kubernetes. docs/scaling.md
// explains them. The package itself is not released. "make queues" runs its tests with real servers.
package queues
