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

// Reads as much at an offset as takes no wait for a disk; -1 and errno as preadv2(2), EAGAIN where all of it would.
ssize_t preadv2(int file, const struct iovec *pieces, int count, off_t offset, int flags);
static inline long cuv_read_cached(int file, void *bytes, unsigned long count, long offset) {
  struct iovec piece = {bytes, count};
  return preadv2(file, &piece, 1, offset, 0x00000008 /* RWF_NOWAIT */);
}

// How many pages of a range are in the page cache; -1 and errno as cachestat(2), which Linux has since 6.5.
long syscall(long number, ...);
static inline long cuv_cached_pages(int file, unsigned long offset, unsigned long count) {
  struct { unsigned long long offset, count; } range = {offset, count};
  struct { unsigned long long cached, dirty, writeback, evicted, recently_evicted; } found;
  long result = syscall(451 /* cachestat */, file, &range, &found, 0);
  return result == 0 ? (long)found.cached : -1;
}
