// Opens files below a folder with openat2(2), available since Linux 5.6. glibc has no function for it.
#pragma once
#include <fcntl.h>

long syscall(long number, ...);

// Opens a path relative to a folder. Fails with EXDEV if the path leads out of the folder, also through a symbolic
// link, and with ELOOP for a link of /proc that is not a path. Returns -1 and sets errno on failure.
static inline int cbeneath_open(int folder, const char *path, int flags) {
  struct { unsigned long long flags, mode, resolve; } how = {
    (unsigned long long)flags, 0, 0x08 | 0x02 /* RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS */};
  return (int)syscall(437 /* openat2 */, folder, path, &how, sizeof how);
}

// The flags to open a folder that is only a starting point.
static const int cbeneath_folder = 010000000 /* O_PATH */ | O_DIRECTORY | O_CLOEXEC;
