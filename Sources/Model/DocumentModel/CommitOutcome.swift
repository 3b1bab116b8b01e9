/// The result of a commit.
package struct CommitOutcome: Equatable, Sendable {
  /// The version of the commit, which is its commit time.
  package var version: Timestamp
  /// One result per write, in order.
  package var results: [WriteResult]

  /// Creates the result of a commit.
  package init(version: Timestamp, results: [WriteResult]) {
    self.version = version
    self.results = results
  }
}
