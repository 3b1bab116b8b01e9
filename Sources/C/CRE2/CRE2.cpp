#include "CRE2.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <new>
#include <string>

struct hearth_pattern {
  re2::RE2 expression;

  hearth_pattern(const re2::StringPiece &text, const re2::RE2::Options &options) : expression(text, options) {}
};

namespace {

re2::StringPiece piece(const void *text, size_t length) {
  return re2::StringPiece(length == 0 ? "" : static_cast<const char *>(text), length);
}

constexpr int group_count_max = 64;

}  // namespace

extern "C" {

hearth_pattern *hearth_pattern_create(const void *text, size_t length, size_t memory_max) {
  try {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(static_cast<int64_t>(memory_max));
    hearth_pattern *pattern = new hearth_pattern(piece(text, length), options);
    if (pattern->expression.ok()) return pattern;
    delete pattern;
  } catch (...) {
    // Memory is exhausted or the library failed, so there is no pattern.
  }
  return nullptr;
}

void hearth_pattern_destroy(hearth_pattern *pattern) { delete pattern; }

int hearth_pattern_group_count(const hearth_pattern *pattern) { return pattern->expression.NumberOfCapturingGroups(); }

int hearth_pattern_group_named(const hearth_pattern *pattern, const void *name, size_t length) {
  try {
    const std::map<std::string, int> &groups = pattern->expression.NamedCapturingGroups();
    auto found = groups.find(std::string(piece(name, length)));
    return found == groups.end() ? -1 : found->second;
  } catch (...) {
    return -1;
  }
}

int hearth_pattern_size(const hearth_pattern *pattern) { return pattern->expression.ProgramSize(); }

bool hearth_pattern_matches(const hearth_pattern *pattern, const void *text, size_t length) {
  return pattern->expression.Match(piece(text, length), 0, length, re2::RE2::ANCHOR_BOTH, nullptr, 0);
}

bool hearth_pattern_find(
    const hearth_pattern *pattern, const void *text, size_t length, size_t start, ptrdiff_t *bounds, int group_count) {
  re2::StringPiece groups[group_count_max];
  int count = std::min(group_count, group_count_max);
  re2::StringPiece whole = piece(text, length);
  if (!pattern->expression.Match(whole, start, length, re2::RE2::UNANCHORED, groups, count)) return false;
  for (int index = 0; index < count; ++index) {
    bool took_part = groups[index].data() != nullptr;
    bounds[2 * index] = took_part ? groups[index].data() - whole.data() : -1;
    bounds[2 * index + 1] = took_part ? bounds[2 * index] + static_cast<ptrdiff_t>(groups[index].size()) : -1;
  }
  return true;
}

}  // extern "C"
