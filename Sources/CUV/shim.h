#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <uv.h>

// Declared by the system's headers only with _GNU_SOURCE, which an importer cannot ask for.
int accept4(int listening, struct sockaddr *address, socklen_t *length, int flags);

// Accepts one connection, not to be inherited and not to block; -1 and errno as accept(2).
static inline int cuv_accept(int listening) {
  return accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

// prctl takes a variable number of arguments, which Swift cannot call.
static inline void cuv_name_thread(const char *name) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
}

// Reads one byte at an offset if that takes no wait for a disk; 1 for yes, else -1 and errno as preadv2(2).
ssize_t preadv2(int file, const struct iovec *pieces, int count, off_t offset, int flags);
static inline long cuv_probe(int file, long offset) {
  char byte;
  struct iovec piece = {&byte, 1};
  return preadv2(file, &piece, 1, offset, 0x00000008 /* RWF_NOWAIT */);
}
