#include <crypt.h>
#include <stdlib.h>
#include <string.h>

/// Whether the complete hash `setting` is that of `phrase`. The time does not depend on the position of the first
/// difference.
static inline int hearth_crypt_accepts(const char *phrase, const char *setting) {
  void *data = NULL;
  int size = 0;
  const char *made = crypt_ra(phrase, setting, &data, &size);
  size_t count = strlen(setting);
  unsigned char difference = 1;
  if (made != NULL && strlen(made) == count) {
    difference = 0;
    for (size_t i = 0; i < count; i++) difference |= (unsigned char)(made[i] ^ setting[i]);
  }
  if (data != NULL) {
    explicit_bzero(data, (size_t)size);
    free(data);
  }
  return difference == 0;
}
