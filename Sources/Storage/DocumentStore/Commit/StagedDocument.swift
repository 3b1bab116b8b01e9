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
  /// The fields now; `nil` where there is no document, and while ``decoded`` holds them.
  private(set) var fields: EncodedFields?
  /// The fields as a tree, from one write with a mask or transforms to the next: a document that a commit writes
  /// many times is decoded and encoded once.
  private var decoded: MapValue?
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

  private var exists: Bool { fields != nil || decoded != nil }

  /// Must follow the last write, before anything below is asked for.
  mutating func encode() {
    guard let map = decoded else { return }
    fields = EncodedFields(map)
    decoded = nil
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

  /// Applies a write, whatever its precondition says; returns the values of its transforms.
  mutating func apply(_ write: Write, requestTime: Timestamp) throws(CommitError) -> [Value] {
    if case .verify = write.operation {
      isVerifiedMissing = !exists
      return []
    }
    let existed = exists
    do throws(WireError) {
      let results = try change(write, requestTime: requestTime)
      isWritten = true
      if !existed || !exists {
        isRecreated = base != nil
        keptCreateVersion = nil
      }
      return results
    } catch { throw .wire(error) }
  }

  private mutating func change(_ write: Write, requestTime: Timestamp) throws(WireError) -> [Value] {
    guard case .update(let body, let mask) = write.operation, mask != nil || !write.transforms.isEmpty else {
      let effect = try WriteApplication.apply(write, to: fields, requestTime: requestTime)
      fields = effect.fields
      decoded = nil
      return effect.transformResults
    }
    var map: MapValue
    if let decoded {
      map = decoded
    } else {
      map = try mask == nil ? MapValue() : fields?.decoded() ?? MapValue()
    }
    // Not held twice, so that changing it does not copy it.
    decoded = nil
    fields = nil
    let results = try WriteApplication.change(&map, body, mask, write.transforms, requestTime: requestTime)
    decoded = map
    return results
  }

  /// Checks a write's precondition, before the write is applied.
  func check(_ write: Write) throws(CommitError) {
    switch write.precondition {
    case .none: break
    case .exists(true):
      guard !exists else { return }
      throw isWritten ? .existsAfterDelete(write.key) : .documentMissing(write.key)
    case .exists(false):
      guard exists else { return }
      throw isWritten ? .createAfterWrite(write.key) : .documentExists(write.key)
    case .updateTime(let required):
      // A document that this commit already wrote has no version yet that a client could name.
      let stored = !exists || isWritten ? 0 : base?.update ?? 0
      guard stored == required.microseconds else {
        if stored > 0, required.microseconds > stored { throw .versionAhead(write.key) }
        throw .versionMismatch(write.key, stored: stored, required: required.microseconds)
      }
    }
  }
}
