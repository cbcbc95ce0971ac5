/* Dials on a board, and workers who turn any of them by one whenever they like.
 *
 * There is nothing wrong with it, but it has 10 to the power of 12 states. Nobody lives
 * to see the end of a complete search; it shows what limits are for.
 */
#define DIALS 12
#define POSITIONS 10

byte dial[DIALS];

active [2] proctype worker()
{
	byte d;

	do
	::	atomic {
			select(d : 0 .. DIALS - 1);
			dial[d] = (dial[d] + 1) % POSITIONS;
			d = 0
		}
	od
}
