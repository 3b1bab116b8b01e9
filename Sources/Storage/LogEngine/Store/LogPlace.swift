/// The place of the commits of a ``LoggedStore`` that are not in its data file yet.
enum LogPlace {
  /// A folder beside the data file, in which the first commit begins a log.
  case folder(any LogFolder)
  /// A log that exists: in such a folder, or one that is elsewhere and never begins or ends with the store.
  case open(any CommitLog)

  /// The log, if it exists.
  var log: (any CommitLog)? { if case .open(let log) = self { log } else { nil } }
}
