/* Peterson's algorithm: two processes take turns in a critical section.
 *
 * It is correct, and small: every state can be visited in far less than a second.
 */
bool wants[2];	/* who wants to enter */
bit turn;	/* who goes first if both do */
byte inside;	/* how many are in the critical section */

active [2] proctype user()
{
	bit me = _pid;
	bit other = 1 - me;

	do
	::	wants[me] = true;
		turn = other;
		!wants[other] || turn == me;	/* wait */

		inside++;
		assert(inside == 1);
		inside--;

		wants[me] = false
	od
}
