/// The limits of what callers read and write in a minute.
extension DatabaseAccess {
  /// Checks that the caller may read more documents in this minute, and counts some of them.
  /// - Throws: `RESOURCE_EXHAUSTED` if it may not.
  func requireReads(counting count: Int = 0) throws(Status) {
    guard case .restricted(let authorizer) = access, let limiter = authorizer.evaluations.limiter else { return }
    try limiter.take(.userReads, count, of: authorizer.auth)
  }

  /// Counts documents that the caller has read.
  func countReads(_ count: Int, in counters: ServiceCounters) {
    counters.add(count, to: .documentsRead)
    chargeReads(count)
  }

  /// Consumes the allowance of the caller for documents that it has read.
  func chargeReads(_ count: Int) {
    guard case .restricted(let authorizer) = access, let limiter = authorizer.evaluations.limiter else { return }
    limiter.charge(.userReads, count, of: authorizer.auth)
  }

  /// Counts documents that the caller writes.
  /// - Throws: `RESOURCE_EXHAUSTED` if the caller may write no more in this minute.
  func takeWrites(_ count: Int) throws(Status) {
    guard count > 0, case .restricted(let authorizer) = access, let limiter = authorizer.evaluations.limiter else {
      return
    }
    try limiter.take(.userWrites, count, of: authorizer.auth)
  }
}
