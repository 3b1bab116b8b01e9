import DocumentModel
import WireFormat

/// A document while the writes of one commit are applied to it in turn.
struct StagedDocument {
  /// The stored document.
  struct Base {
    var create: Int64
    var update: Int64
    var fields: EncodedFields
  }

  let key: DocumentKey
  /// The stored document, or `nil` if it does not exist.
  let base: Base?
  /// The current fields; `nil` if the document does not exist, and while ``decoded`` holds them.
  private(set) var fields: EncodedFields?
  /// The current fields as a tree, kept between writes with a mask or transforms, so that a document that a commit
  /// writes many times is decoded and encoded once.
  private var decoded: MapValue?
  /// The create version to keep, or `nil` if this commit creates the document.
  private(set) var keptCreateVersion: Int64?
  private var isWritten = false
  /// Deleting and then creating a document makes a new one, even with the same fields.
  private var isRecreated = false
  private var isVerifiedMissing = false

  init(_ key: DocumentKey, base: Base?) {
    self.key = key
    self.base = base
    fields = base?.fields
    keptCreateVersion = base?.create
  }

  private var exists: Bool { fields != nil || decoded != nil }

  /// Encodes the fields. Call it after the last write, before reading the results below.
  mutating func encode() {
    guard let map = decoded else { return }
    fields = EncodedFields(map)
    decoded = nil
  }

  /// Whether the commit must write the document.
  var isChanged: Bool {
    switch (base, fields) {
    case (nil, nil): false
    case (let base?, let fields?): isRecreated || base.fields != fields
    default: true
    }
  }

  /// When the document last changed, as of the end of the commit.
  var resultTime: CommitPlan.ResultTime {
    guard fields != nil else { return isVerifiedMissing && !isWritten ? .commit : .none }
    if let base, !isChanged { return .earlier(base.update) }
    return .commit
  }

  /// Applies a write without checking its precondition; returns the values of its transforms.
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
    // Hold the map only once, so changing it does not copy it.
    decoded = nil
    fields = nil
    let results = try WriteApplication.change(&map, body, mask, write.transforms, requestTime: requestTime)
    decoded = map
    return results
  }

  /// Checks a write's precondition. Call it before the write is applied.
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
      // A document that this commit already wrote has no version yet that a client could know.
      let stored = !exists || isWritten ? 0 : base?.update ?? 0
      guard stored == required.microseconds else {
        if stored > 0, required.microseconds > stored { throw .updateTimeInFuture(write.key) }
        throw .versionMismatch(write.key, stored: stored, required: required.microseconds)
      }
    }
  }
}
