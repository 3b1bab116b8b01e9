import Synchronization

/// The pace of writers while a table is being flushed.
extension LoggedTables {
  /// Waits while the active table fills faster than the flushing one gets to the data file. So each writer waits a
  /// little, instead of all of them until the flush ends.
  func keepPace() {
    var waited = 0
    while waited < settings.pauseMicrosecondsMax, isAheadOfFlush(by: Self.leadMax) {
      settings.pause(Self.pauseMicroseconds)
      waited += Self.pauseMicroseconds
    }
  }

  private static let pauseMicroseconds = 1000
  /// The lead of the filled part over the flushed part from which writers wait, and that from which the flush hurries.
  private static let leadMax = 0.125
  static let urgentLead = 0.03

  /// Whether the filled part of the room is larger than the flushed part of the other table by more than `lead`.
  func isAheadOfFlush(by lead: Double) -> Bool {
    let view = view.withLock { $0 }
    guard view.flushing != nil, view.flushFailure == nil else { return false }
    let filled = view.isActiveEmpty ? 0 : view.active.table.allocatedBytes
    let room = min(settings.memtableBytesMax, settings.budget.freeBytes + filled)
    return Double(filled) / Double(max(1, room))
      > Double(flushedKeys.load(ordering: .relaxed)) / Double(max(1, view.flushingKeys)) + lead
  }
}
