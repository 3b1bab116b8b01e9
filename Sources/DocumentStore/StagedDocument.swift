import DocumentModel
import WireFormat

/// A document while the writes of one commit pass over it.
struct StagedDocument {
  /// The document as the store has it.
  struct Base {
    var create: Int64
    var update: Int64
    var fields: EncodedFields
  }

  let key: DocumentKey
  /// How the store has it; `nil` where it is missing.
  let base: Base?
  /// The fields now; `nil` where there is no document.
  private(set) var fields: EncodedFields?
  /// The create version to keep; `nil` where this commit creates the document.
  private(set) var keptCreateVersion: Int64?
  private var isWritten = false
  /// Deleting and creating makes a new document, even of the same fields.
  private var isRecreated = false
  private var isVerifiedMissing = false

  init(_ key: DocumentKey, base: Base?) {
    self.key = key
    self.base = base
    fields = base?.fields
    keptCreateVersion = base?.create
  }

  /// Whether the commit must write it.
  var isChanged: Bool {
    switch (base, fields) {
    case (nil, nil): false
    case (let base?, let fields?): isRecreated || base.fields != fields
    default: true
    }
  }

  /// When the document last changed, seen from the end of the commit.
  var resultTime: CommitPlan.ResultTime {
    guard fields != nil else { return isVerifiedMissing && !isWritten ? .commit : .none }
    if let base, !isChanged { return .earlier(base.update) }
    return .commit
  }

  /// Checks a write's precondition and applies it; returns the values of its transforms.
  mutating func apply(_ write: Write, requestTime: Timestamp) throws(CommitError) -> [Value] {
    try check(write)
    let effect: WriteApplication.Effect
    do { effect = try WriteApplication.apply(write, to: fields, requestTime: requestTime) } catch { throw .wire(error) }
    if case .verify = write.operation {
      isVerifiedMissing = fields == nil
      return []
    }
    isWritten = true
    if effect.fields == nil || fields == nil {
      isRecreated = base != nil
      keptCreateVersion = nil
    }
    fields = effect.fields
    return effect.transformResults
  }

  private func check(_ write: Write) throws(CommitError) {
    switch write.precondition {
    case .none: break
    case .exists(true):
      guard fields == nil else { return }
      throw isWritten ? .existsAfterDelete(write.key) : .documentMissing(write.key)
    case .exists(false):
      guard fields != nil else { return }
      throw isWritten ? .createAfterWrite(write.key) : .documentExists(write.key)
    case .updateTime(let required):
      // A document that this commit already wrote has no version yet that a client could name.
      let stored = fields == nil || isWritten ? 0 : base?.update ?? 0
      guard stored == required.microseconds else {
        throw .versionMismatch(write.key, stored: stored, required: required.microseconds)
      }
    }
  }
}
