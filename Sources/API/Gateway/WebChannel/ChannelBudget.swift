import Synchronization

/// How much memory all channels of a server hold for their clients.
///
/// Beyond it a channel that holds more than ``shareBytes`` is given up; its client opens another and resumes.
final class ChannelBudget: Sendable {
  /// What a channel may hold however much the others do.
  static let shareBytes = 64 << 10

  private let bytesMax: Int
  private let held = Atomic<Int>(0)

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// Notes that a channel holds so many bytes more, or less.
  func change(by bytes: Int) { held.wrappingAdd(bytes, ordering: .relaxed) }

  /// Whether channels hold more than they may together.
  var isExceeded: Bool { held.load(ordering: .relaxed) > bytesMax }
}
