#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <unistd.h>
static void *f(void *x) { struct mq_attr a = {0, 1, 8, 0}; mqd_t q = mq_open("/tooldeadline-test", O_CREAT|O_RDWR, 0600, &a); mq_unlink("/tooldeadline-test"); char b[8]; mq_receive(q, b, 8, 0); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); char c; read(0, &c, 1); }
