import Basics
import DocumentModel

/// The threads that decode requests of more than ``Limits/decodedOnLoopBytesMax``, so that these do not hold an event
/// loop.
enum LargeRequests {
  private static let workers = BoundedWorkers(
    "decoders", threads: WorkerLimits.processors, unfinishedMax: WorkerLimits.decodersUnfinishedMax)

  /// Whether another thread should decode a body.
  static func contains(_ body: UnsafeRawBufferPointer) -> Bool { body.count > Limits.decodedOnLoopBytesMax }

  /// Runs `decode` on another thread. If too many requests wait there, it runs on this one.
  static func run(_ decode: @escaping @Sendable () -> Void) {
    if !workers.run(decode) { decode() }
  }
}
