#include <stddef.h>
#include <sys/epoll.h>

/* string.h hides it from programs that do not ask for the system's own extensions. */
void *memmem(const void *haystack, size_t haystack_count, const void *needle, size_t needle_count);
