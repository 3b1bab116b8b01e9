import DocumentModel
import WireFormat

/// The row at which an operator is. Operators that handle one row at a time change it in place, so it is allocated once
/// for a pipeline, not for each row.
final class PipelineRow {
  /// A variable, which can be absent.
  struct Variable {
    let buffer = RowBuffer()
    var isSet = false
  }

  /// The full name of the document, if ``hasName``.
  let name = RowBuffer()
  var hasName = false
  var createTime: Timestamp?
  var updateTime: Timestamp?
  /// The version of the stored document that has the name and from which the row was made; `nil` if no document has it.
  var readVersion: Int64?
  /// The score of the `search` stage, if the pipeline has one.
  var score: Double?
  /// The fields in the form of stored documents. They are those of ``own``, or borrowed from the operator that read
  /// them.
  private(set) var fields = UnsafeRawBufferPointer(start: nil, count: 0)
  private let own = RowBuffer()
  private(set) var variables: [Variable]
  /// The memory of the fields and the variables, without those that are borrowed.
  private(set) var capacity = 0
  /// The part of ``capacity`` that the run counts.
  var held = 0

  /// The fields by which expressions read the name and the times.
  static let metadataNames: Set<String> = ["__name__", "__create_time__", "__update_time__"]

  init(variableCount: Int) {
    variables = []
    for _ in 0..<variableCount { variables.append(Variable()) }
  }

  var map: EncodedMap { EncodedMap(documentFields: fields) }

  /// Removes everything but the variables.
  func clear() {
    fields = UnsafeRawBufferPointer(start: nil, count: 0)
    readVersion = nil
    dropMetadata()
  }

  func dropMetadata() {
    hasName = false
    score = nil
    createTime = nil
    updateTime = nil
  }

  /// Sets fields that the caller keeps as long as the row is used.
  func borrow(_ fields: UnsafeRawBufferPointer) { self.fields = fields }

  /// Copies fields, which may refer to the row's present ones. Frees the argument's memory if it is large.
  func assign(_ fields: inout [UInt8]) {
    let before = own.capacity
    own.assign(fields)
    capacity += own.capacity - before
    self.fields = own.bytes
    if fields.capacity > RowBuffer.keptBytesMax { fields = [] }
  }

  /// Sets a variable to an encoded value, or to absent. Adds the variable if the row comes from another pipeline, which
  /// has fewer.
  func set(_ variable: Int, _ value: UnsafeRawBufferPointer?) {
    while variables.count <= variable { variables.append(Variable()) }
    variables[variable].isSet = value != nil
    guard let value else { return }
    let before = variables[variable].buffer.capacity
    variables[variable].buffer.assign(value)
    capacity += variables[variable].buffer.capacity - before
  }

  /// Returns the encoded value of a variable, or `nil` if it is absent.
  func value(of variable: Int) -> UnsafeRawBufferPointer? {
    guard variable < variables.count, variables[variable].isSet else { return nil }
    return variables[variable].buffer.bytes
  }

  /// Copies name and times of another row.
  func copyMetadata(of row: PipelineRow) {
    hasName = row.hasName
    if hasName { name.assign(row.name.bytes) }
    createTime = row.createTime
    updateTime = row.updateTime
    readVersion = row.readVersion
    score = row.score
  }

  /// Copies the first variables of another row.
  func copyVariables(of row: PipelineRow, _ count: Int) {
    for index in 0..<count { set(index, row.value(of: index)) }
  }

  // MARK: Records

  /// Appends the row as bytes, for ``restore(_:)``.
  func appendRecord(to out: inout [UInt8]) {
    let times: UInt8 = (createTime == nil ? 0 : 2) | (updateTime == nil ? 0 : 4)
    out.append((hasName ? 1 : 0) | times | (score == nil ? 0 : 8) | (readVersion == nil ? 0 : 16))
    if hasName { Self.append(name.bytes, to: &out) }
    for time in [createTime, updateTime] {
      if let time { withUnsafeBytes(of: time.microseconds) { out.append(contentsOf: $0) } }
    }
    if let score { withUnsafeBytes(of: score) { out.append(contentsOf: $0) } }
    if let readVersion { withUnsafeBytes(of: readVersion) { out.append(contentsOf: $0) } }
    withUnsafeBytes(of: UInt32(variables.count)) { out.append(contentsOf: $0) }
    for index in variables.indices {
      out.append(variables[index].isSet ? 1 : 0)
      if let value = value(of: index) { Self.append(value, to: &out) }
    }
    out.append(raw: fields)
  }

  private static func append(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    withUnsafeBytes(of: UInt32(bytes.count)) { out.append(contentsOf: $0) }
    out.append(raw: bytes)
  }

  /// Restores a row from a record. Copies it.
  func restore(_ record: UnsafeRawBufferPointer) {
    var rest = record
    func take(_ count: Int) -> UnsafeRawBufferPointer {
      defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count)) }
      return UnsafeRawBufferPointer(rebasing: rest.prefix(count))
    }
    func takeBytes() -> UnsafeRawBufferPointer { take(Int(take(4).loadUnaligned(as: UInt32.self))) }
    func takeTime() -> Timestamp { Timestamp(uncheckedMicroseconds: take(8).loadUnaligned(as: Int64.self)) }
    let flags = take(1)[0]
    hasName = flags & 1 != 0
    if hasName { name.assign(takeBytes()) }
    createTime = flags & 2 == 0 ? nil : takeTime()
    updateTime = flags & 4 == 0 ? nil : takeTime()
    score = flags & 8 == 0 ? nil : take(8).loadUnaligned(as: Double.self)
    readVersion = flags & 16 == 0 ? nil : take(8).loadUnaligned(as: Int64.self)
    let count = Int(take(4).loadUnaligned(as: UInt32.self))
    for index in 0..<max(count, variables.count) {
      set(index, index >= count || take(1)[0] == 0 ? nil : takeBytes())
    }
    let before = own.capacity
    own.assign(rest)
    capacity += own.capacity - before
    fields = own.bytes
  }
}
