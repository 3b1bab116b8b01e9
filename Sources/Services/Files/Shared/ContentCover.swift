import ContentSharing
import KeyValue
import Synchronization

/// The reason why content has a copy in the shared content that stays, when a transaction refers to it.
///
/// A sweep removes a copy only if no object refers to its content and it saw the copy an hour before. So a copy stays if its
/// publication began less than ``SharedContentLimits/commitSecondsMax`` before the transaction. If the transaction finds
/// another object that refers to the content, the copy of that object stays.
final class ContentCover: Sendable {
  private let digest: ContentDigest
  /// The boot time at which the publication of a copy began, in seconds, or `nil` without one.
  private let begun: Int64?
  private let missing = Atomic<Bool>(false)

  init(_ digest: ContentDigest, begun: Int64?) {
    self.digest = digest
    self.begun = begun
  }

  /// Whether a transaction was refused because the content needs a new copy.
  var isMissing: Bool { missing.load(ordering: .acquiring) }

  /// Checks in a transaction, before it writes anything, that the content has a copy that stays.
  /// - Throws: ``FilesError/sharedContent(_:)``, and sets ``isMissing``.
  func check(_ transaction: any KeyValueTransaction) throws(FilesError) {
    if let begun, SecondsSinceBoot.now - begun < Int64(SharedContentLimits.commitSecondsMax) { return }
    if try transaction.holders(of: digest) > 0 { return }
    missing.store(true, ordering: .releasing)
    throw .sharedContent("the content needs a new copy")
  }
}
