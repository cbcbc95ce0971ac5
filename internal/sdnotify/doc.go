// Package sdnotify speaks the protocol of sd_notify(3): datagrams of lines KEY=VALUE to the socket in NOTIFY_SOCKET. It
// decides nothing of what a message is good for.
package sdnotify
