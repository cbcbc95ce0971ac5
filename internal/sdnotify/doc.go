// Package sdnotify implements both sides of the protocol of sd_notify(3): datagrams of lines KEY=VALUE to the socket
// that the variable NOTIFY_SOCKET names. It does not act on the messages.
package sdnotify
