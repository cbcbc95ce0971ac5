/* Two processes count to the same counter without a lock.
 *
 * Both may read the same value, and then one of the two steps is lost.
 */
#define STEPS 3

byte counter;
byte finished;

active [2] proctype worker()
{
	byte i, seen;

	for (i : 1 .. STEPS) {
		seen = counter;		/* read */
		counter = seen + 1	/* and write, as two steps */
	}
	finished++;
	if
	:: finished == 2 -> assert(counter == 2 * STEPS)
	:: else
	fi
}
