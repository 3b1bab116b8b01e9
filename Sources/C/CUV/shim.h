#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <uv.h>

// The system's headers declare this only with _GNU_SOURCE, which Swift's importer cannot define.
int accept4(int listening, struct sockaddr *address, socklen_t *length, int flags);

// Accepts one connection, which is non-blocking and not inherited by child processes. Returns -1 and sets errno like
// accept(2).
static inline int cuv_accept(int listening) {
  return accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

// Returns the user of the process at the other end of a Unix socket, or -1. glibc declares struct ucred only for GNU
// programs.
static inline long cuv_peer_user(int socket) {
  struct { int process; unsigned user, group; } peer;
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return -1;
  return peer.user;
}

// Creates an event descriptor that is non-blocking and not inherited by child processes. Returns -1 and sets errno like
// eventfd(2), which Swift's modules of glibc do not contain.
static inline int cuv_event_open(void) {
  return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

// Makes an event descriptor readable.
static inline void cuv_event_send(int descriptor) {
  eventfd_write(descriptor, 1);
}

// Makes an event descriptor unreadable until the next call of cuv_event_send.
static inline void cuv_event_take(int descriptor) {
  eventfd_t count;
  eventfd_read(descriptor, &count);
}

// Swift cannot call prctl, which has variable arguments.
static inline void cuv_name_thread(const char *name) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
}

// Reads as many bytes at an offset as possible without waiting for a disk. Returns -1 and sets errno like
// preadv2(2), EAGAIN if no byte is available.
ssize_t preadv2(int file, const struct iovec *pieces, int count, off_t offset, int flags);
static inline long cuv_read_cached(int file, void *bytes, unsigned long count, long offset) {
  struct iovec piece = {bytes, count};
  return preadv2(file, &piece, 1, offset, 0x00000008 /* RWF_NOWAIT */);
}

// Returns the number of pages of a range that are in the page cache, or -1 with errno like cachestat(2), available
// since Linux 6.5.
long syscall(long number, ...);
static inline long cuv_cached_pages(int file, unsigned long offset, unsigned long count) {
  struct { unsigned long long offset, count; } range = {offset, count};
  struct { unsigned long long cached, dirty, writeback, evicted, recently_evicted; } found;
  long result = syscall(451 /* cachestat */, file, &range, &found, 0);
  return result == 0 ? (long)found.cached : -1;
}

// The bytes that were freed but that the process keeps for later allocations, whether or not the system has them back.
static inline unsigned long cuv_freed_bytes(void) {
  return mallinfo2().fordblks;
}

// Maps blocks of at least this many bytes separately. The kernel takes them back when they are freed.
static inline void cuv_map_large_blocks(int bytes) {
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, 2 * bytes);
}
