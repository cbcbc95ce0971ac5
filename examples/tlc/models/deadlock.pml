/* Dining philosophers, each of whom takes the left fork first.
 *
 * When all of them hold their left fork, nobody can go on: a deadlock.
 */
#define N 5

bool taken[N];

active [N] proctype philosopher()
{
	byte left = _pid;
	byte right = (_pid + 1) % N;

	do
	::	atomic { !taken[left] -> taken[left] = true };
		atomic { !taken[right] -> taken[right] = true };
		/* eats */
		taken[right] = false;
		taken[left] = false
	od
}
