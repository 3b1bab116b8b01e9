// The files of the console, as read-only data of the program.
#pragma once

#include <stddef.h>

/// One file of the console.
typedef struct {
  /// The path below `files`.
  const char *name;
  const unsigned char *bytes;
  size_t count;
} console_file;

/// The number of files.
size_t console_file_count(void);
/// Returns a file by its number, which must be less than the number of files. Scripts are in the order in which they
/// depend on each other.
console_file console_file_at(size_t index);
