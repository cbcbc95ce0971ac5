#include <pthread.h>
#include <sys/msg.h>
#include <unistd.h>
static void *f(void *x) { int q = msgget(IPC_PRIVATE, 0600); struct { long t; char c[1]; } m; struct msqid_ds d; if (!fork()) { sleep(60); _exit(0); } msgrcv(q, &m, 1, 0, 0); msgctl(q, IPC_RMID, &d); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); char c; read(0, &c, 1); }
