// The main thread has ended, and another one works.
#include <pthread.h>
#include <unistd.h>
static void *f(void *x) { for (;;) sleep(1); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }
