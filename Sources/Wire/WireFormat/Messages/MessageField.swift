package import DocumentModel

/// A message that clients send. The type declares its fields once, for both encodings:
///
///     mutating func decode(_ field: inout some MessageField) throws(WireError) {
///       if field.matches(1, "fields") { … } else if field.matches(2, "before", .varint) { … }
///     }
///
/// That function implements both requirements. They are separate so that the compiler specializes the function for
/// each encoding.
package protocol DecodableMessage {
  /// The type of the decoded message.
  associatedtype Decoded = Self
  /// The full name of the message, such as `google.firestore.v1.Write`.
  static var typeName: StaticString { get }
  /// The member of the message for which a JSON `null` is a value. For all others it means that they are not set.
  static var nullMember: StaticString? { get }
  /// Decodes a member of the message in JSON.
  ///
  /// - Throws: ``WireError`` with the documented text if the field is malformed.
  mutating func decode(_ field: inout JSONField) throws(WireError)
  /// Decodes a field of the message in protobuf.
  ///
  /// - Throws: ``WireError`` with the documented text if the field is malformed.
  mutating func decode(_ field: inout ProtobufField) throws(WireError)
  /// Returns the message after its last field.
  ///
  /// - Throws: ``WireError`` if the fields do not form a message.
  func decoded() throws(WireError) -> Decoded
}

extension DecodableMessage {
  package static var nullMember: StaticString? { nil }
}

extension DecodableMessage where Decoded == Self {
  package func decoded() throws(WireError) -> Self { self }
}

/// One field of a message in one encoding.
///
/// Compare the field with the fields of the message by ``matches(_:_:_:)``, then call the function for its type. Fields
/// that do not match are errors in JSON and skipped in protobuf. Errors of JSON contain the path to the field.
package protocol MessageField {
  /// Whether the field has this number and type in protobuf, or this name in JSON, in snake_case or lowerCamelCase.
  mutating func matches(_ number: Int, _ name: StaticString, _ type: ProtobufReader.WireType) -> Bool
  /// Accepts a field with this name without decoding it.
  mutating func ignore(_ name: StaticString)
  /// Accepts a field with any name without decoding it.
  mutating func ignoreAll()
  /// Rejects a second member of a oneof in JSON. In protobuf the last member is used.
  ///
  /// - Throws: ``WireError/oneofAlreadySet(path:oneof:member:)``.
  func claim(_ oneof: StaticString, isSet: Bool) throws(WireError)

  /// Checks the number of filters around a filter. The JSON parser has a limit of its own.
  ///
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if it exceeds the limit of protobuf.
  func checkNesting(_ depth: Int) throws(WireError)

  // Scalars. They throw an error if the value does not fit the field.
  func text() throws(WireError) -> UnsafeRawBufferPointer
  func bytes() throws(WireError) -> [UInt8]
  func bool() throws(WireError) -> Bool
  func int32() throws(WireError) -> Int32
  func int64() throws(WireError) -> Int64
  func double() throws(WireError) -> Double
  /// Checks a `google.protobuf.NullValue`, which in JSON can be `null`.
  func null() throws(WireError)
  /// The number of an enum's value. In JSON it is an index in `names`, where gaps in the numbers are empty names. In
  /// protobuf it can be any number.
  func enumeration(_ type: StaticString, _ names: [StaticString]) throws(WireError) -> Int

  // Wrappers and times.
  func int32Value() throws(WireError) -> Int32
  func int64Value() throws(WireError) -> Int64
  func doubleValue() throws(WireError) -> Double
  /// A time, truncated to microseconds.
  func timestamp() throws(WireError) -> Timestamp
  /// A time that must have whole microseconds.
  func alignedTimestamp() throws(WireError) -> Timestamp

  // Messages.
  func message<M: DecodableMessage>(_ message: M) throws(WireError) -> M.Decoded
  func document() throws(WireError) -> DecodedDocument
  func value(_ purpose: CanonicalEncoder.Purpose) throws(WireError) -> Value
  func arrayValue(_ purpose: CanonicalEncoder.Purpose) throws(WireError) -> [Value]
  /// Parses the full name of a document in any database.
  func documentName(_ name: UnsafeRawBufferPointer) throws(WireError) -> (database: DatabaseID, key: DocumentKey)

  /// The database of the request, to which its documents must belong.
  var database: DatabaseID? { get }
  /// Calls `body` with each element of a repeated field. In JSON the field has all elements, in protobuf one.
  func forEach(_ body: (Self) throws(WireError) -> Void) throws(WireError)
  /// Calls `body` with each entry of a `map<string, …>`. In JSON the field has all entries, in protobuf one.
  func forEachEntry(_ body: (String, Self) throws(WireError) -> Void) throws(WireError)
  /// Whether a repeated field that occurs again adds its elements. That is so in protobuf; in JSON the last member
  /// replaces the others.
  var addsElements: Bool { get }
}

extension MessageField {
  /// Whether the field is a string, bytes or a message with this number in protobuf, or has this name in JSON.
  package mutating func matches(_ number: Int, _ name: StaticString) -> Bool { matches(number, name, .lengthDelimited) }

  func string() throws(WireError) -> String { String(decoding: try text(), as: UTF8.self) }

  func documentName() throws(WireError) -> (database: DatabaseID, key: DocumentKey) {
    try documentName(try text())
  }

  func fieldPath() throws(WireError) -> FieldPath {
    let text = try string()
    do throws(ModelError) { return try FieldPath(text) } catch { throw .model(error) }
  }

  /// A page token, which is base64 in both encodings.
  func pageToken() throws(WireError) -> [UInt8] {
    guard let bytes = Base64.decode(try string()) else { throw .model(.invalidPageToken) }
    return bytes
  }

  // MARK: Repeated fields

  /// Appends messages, which all start as `empty`. Throws `excess` instead of appending more than `countMax`.
  func append<M: DecodableMessage>(
    _ empty: M, to elements: inout [M.Decoded], countMax: Int = .max, excess: ModelError = .emptyFilter
  ) throws(WireError) {
    if !addsElements { elements.removeAll() }
    try forEach { (element) throws(WireError) in
      guard elements.count < countMax else { throw .model(excess) }
      elements.append(try element.message(empty))
    }
  }

  /// Appends documents of the request's database.
  func append(to keys: inout [DocumentKey]) throws(WireError) {
    if !addsElements { keys.removeAll() }
    try forEach { (element) throws(WireError) in
      let name = try element.documentName()
      if let mismatch = database.mismatch(name.database) { throw mismatch }
      keys.append(name.key)
    }
  }

  /// Appends writes to the request's database.
  func append(to writes: inout [Write]) throws(WireError) {
    var mismatch: WireError?
    if !addsElements { writes.removeAll() }
    try forEach { (element) throws(WireError) in
      let write = try element.message(WriteMembers())
      mismatch = mismatch ?? database.mismatch(write.database)
      writes.append(write.write)
    }
    if let mismatch { throw mismatch }
  }

  // MARK: The oneof consistency_selector

  /// Decodes the transaction or time of a read. Returns whether the field is one of them.
  mutating func reads(
    at consistency: inout ConsistencySelector, transaction: Int, readTime: Int, isSet: Bool = false
  ) throws(WireError) -> Bool {
    let isTaken = isSet || consistency != .latest
    if matches(transaction, "transaction") {
      try claim("consistency_selector", isSet: isTaken)
      consistency = .transaction(TransactionID(bytes: try bytes()))
    } else if matches(readTime, "read_time") {
      try claim("consistency_selector", isSet: isTaken)
      consistency = .readTime(try alignedTimestamp())
    } else {
      return false
    }
    return true
  }

  /// Decodes the transaction or time of a read, or the options of a transaction to begin. Returns whether the field is
  /// one of them. A new transaction is read-only unless its options say otherwise.
  mutating func reads(
    at consistency: inout ConsistencySelector, in begun: inout TransactionMode?, transaction: Int,
    newTransaction: Int, readTime: Int
  ) throws(WireError) -> Bool {
    if matches(newTransaction, "new_transaction") {
      try claim("consistency_selector", isSet: begun != nil || consistency != .latest)
      begun = try message(TransactionOptions()) ?? .readOnly(nil)
      consistency = .latest
    } else if try reads(at: &consistency, transaction: transaction, readTime: readTime, isSet: begun != nil) {
      begun = nil
    } else {
      return false
    }
    return true
  }
}

extension DatabaseID? {
  /// Returns the error for a name in another database than this one, the request's.
  func mismatch(_ named: DatabaseID) -> WireError? {
    named == self ? nil : .model(.otherDatabase(requested: self?.name ?? "", accessed: named.name))
  }
}
