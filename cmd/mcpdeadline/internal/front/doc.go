// Package front serves hosts over Streamable HTTP: a session for each host, and one for the requests that stand alone. It
// says which sessions there may be, what hosts that do not read or have gone may cost, and on which response a message goes out.
package front
