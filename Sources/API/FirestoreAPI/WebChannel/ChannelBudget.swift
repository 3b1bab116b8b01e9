import Synchronization

/// The memory that all channels of a server together buffer for their clients.
///
/// If it is exceeded, channels that buffer more than ``shareBytes`` are ended. Their clients open new channels and
/// resume.
final class ChannelBudget: Sendable {
  /// The number of bytes that each channel may always buffer.
  static let shareBytes = 64 << 10

  private let bytesMax: Int
  private let held = Atomic<Int>(0)

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// Records that a channel buffers `bytes` more, or fewer if negative.
  func change(by bytes: Int) { held.wrappingAdd(bytes, ordering: .relaxed) }

  /// Whether the channels together exceed their limit.
  var isExceeded: Bool { held.load(ordering: .relaxed) > bytesMax }
}
