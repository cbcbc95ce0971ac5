/* The verifier that spin generates, pan.c, prints what it has found when it gets SIGINT,
 * but simply dies of SIGTERM, which is what a supervisor sends. Here it takes both alike,
 * so that a search that was stopped still reports. */
#include "pan.c"

__attribute__((constructor)) static void report_on_term(void)
{
	signal(SIGTERM, stopped);
}
