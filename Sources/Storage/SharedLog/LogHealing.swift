import LogEngine

/// The repair of a log that lost its newest entries, although it had acknowledged them: an engine with asynchronous
/// replication failed over. Its owner appends the same entries again, as long as no other node owns the log.
///
/// It looks for an entry that the log still has, in steps of growing length, and appends those after it. If the log was
/// truncated, such steps can miss the few entries that are left, so it looks at the newest ones one by one then. An entry that
/// is there already is only settled. Each append has the condition of a first one, so the log has one entry at a position
/// whatever happens.
struct LogHealing: Sendable {
  /// The next task of the caller, or the outcome.
  enum Step: Equatable, Sendable {
    case perform(TableRequest)
    /// The log has all entries. The number is that of the entries after the one that was found.
    case healed(Int)
    /// Another owner has the log, or it lost more than this node keeps.
    case failed
  }

  /// About so many bytes of bodies an owner keeps to repair the log. Those that an ``EntryFeed`` keeps as well take no more
  /// memory.
  static let bytesMax = 16 << 20

  private let entries: [SharedEntry]
  /// The entry that is looked for, or appended.
  private var place: Int
  private var distance = 1
  /// Whether it looks at the newest entries one by one, and the least place of that.
  private var least: Int?
  private static let singleMax = 256
  private var append: EntryAppend?
  private var count = 0
  /// How often the log lost entries during the repair.
  private var losses = 0
  private static let lossesMax = 8

  /// Prepares to heal a log that should have these entries, the oldest first. There is at least one.
  init(_ entries: [SharedEntry]) {
    self.entries = entries
    place = entries.count - 1
  }

  /// The first step.
  var request: TableRequest { .settle(entries[place].position) }

  /// Returns the step after an answer; `nil` is a lost one.
  mutating func receive(_ reply: TableReply?) -> Step {
    guard append == nil else { return proceed(reply) }
    switch reply {
    case .settled: return appendNext()
    case .notSettled:
      if let least {
        guard place > least else { return .failed }
        place -= 1
      } else if place > 0 {
        place = max(0, place - distance)
        distance *= 2
      } else {
        least = max(0, entries.count - Self.singleMax)
        place = entries.count - 1
      }
      return .perform(request)
    default: return .perform(request)
    }
  }

  private mutating func proceed(_ reply: TableReply?) -> Step {
    guard var append else { return .failed }
    if reply == .refused(found: nil), losses < Self.lossesMax {
      losses += 1
      self.append = nil
      place -= 1
      distance = 1
      return .perform(request)
    }
    switch append.receive(reply) {
    case .perform(let request):
      self.append = append
      return .perform(request)
    case .appended:
      count += 1
      return appendNext()
    case .refused, .unknown: return .failed
    }
  }

  private mutating func appendNext() -> Step {
    guard place + 1 < entries.count else { return .healed(count) }
    let next = EntryAppend(entries[place + 1], behind: entries[place].position)
    place += 1
    append = next
    return .perform(next.request)
  }
}
