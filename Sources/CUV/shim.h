#include <sys/prctl.h>
#include <sys/socket.h>
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
