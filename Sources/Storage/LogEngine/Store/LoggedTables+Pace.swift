import Synchronization

/// The pace of writers while a table is being flushed.
extension LoggedTables {
  /// Waits while the active table fills faster than the flushing one gets to the data file: the further it is ahead,
  /// the longer. So writers slow down step by step until they are as fast as the data file, and need not wait until the
  /// flush ends.
  func keepPace() {
    var waited = 0
    while waited < pauseMicroseconds(at: leadOverFlush()) {
      settings.pause(Self.stepMicroseconds)
      waited += Self.stepMicroseconds
    }
  }

  private static let stepMicroseconds = 1000
  /// The lead from which writers wait, and that at which they wait for the longest time.
  private static let (leadMin, leadMax) = (0.06, 0.25)
  /// The lead over a third of the room from which the flush hurries.
  private static let lateLead = 0.03

  /// The time that a writer waits, in microseconds. It grows with the square of the lead, so that a short burst hardly
  /// waits.
  private func pauseMicroseconds(at lead: Double) -> Int {
    let part = min(1, max(0, (lead - Self.leadMin) / (Self.leadMax - Self.leadMin)))
    return Int(Double(settings.pauseMicrosecondsMax) * part * part)
  }

  /// Whether the flush should hurry: at its pace, the active table would be filled by more than a third at the end.
  var isFlushLate: Bool { leadOverFlush(ofRoom: 1.0 / 3) > Self.lateLead }

  /// By how much the filled part of the room for the active table, or of a part of this room, exceeds the flushed part
  /// of the other table. Zero if no flush runs.
  private func leadOverFlush(ofRoom part: Double = 1) -> Double {
    let view = view.withLock { $0 }
    guard view.flushing != nil, view.flushFailure == nil else { return 0 }
    let filled = filledBytes.load(ordering: .relaxed)
    let room = part * Double(min(settings.memtableBytesMax, settings.budget.freeBytes + filled))
    return Double(filled) / max(1, room)
      - Double(flushedKeys.load(ordering: .relaxed)) / Double(max(1, view.flushingKeys))
  }
}
