import DocumentModel
import WireFormat

/// The state that the readers of all formats share: the tokens, the path, the fields of the open documents, and the
/// location of errors.
///
/// Documents nest: the fields of a document are complete only at its closing brace, and documents of its
/// subcollections can come before it. Each open document therefore has its own encoder, which the next document at
/// that depth reuses.
struct DocumentBuilder: ~Copyable {
  /// The tokens of the file.
  var tokens: JSONTokenizer
  /// The keys of the open objects, to find repeated keys.
  var keys = KeyTable()
  /// The IDs from the root to the current position, joined by `/`.
  private(set) var path: [UInt8] = []
  /// The encoder for the fields of the innermost open document.
  var encoder: CanonicalEncoder {
    get { encoders[depth - 1] }
    _modify { yield &encoders[depth - 1] }
  }
  /// The documents root of the target database, followed by `/`.
  let documentsRoot: [UInt8]
  let options: ReadOptions
  /// The facts about the part of the file that was read.
  var tally = ReadTally()
  /// A buffer for decoded bytes values and for the names of references.
  var scratch: [UInt8] = []

  private var encoders: [CanonicalEncoder] = []
  private var depth = 0
  /// The names of the open fields, concatenated. ``fieldStarts`` has the offset of each.
  private var fieldNames: [UInt8] = []
  private var fieldStarts: [Int] = []

  init(
    _ source: ByteSource, database: DatabaseID, _ extent: JSONTokenizer.Extent, bufferBytes: Int,
    options: ReadOptions = ReadOptions()
  ) {
    self.options = options
    tokens = JSONTokenizer(source, extent, bufferBytes: bufferBytes)
    documentsRoot = Array(database.documentsRoot.utf8) + [UInt8(ascii: "/")]
  }

  /// The current size of all buffers, in bytes.
  var bufferedBytes: Int {
    encoders.reduce(tokens.bufferedBytes + keys.bufferedBytes + path.capacity + scratch.capacity) {
      $0 + $1.bytes.capacity
    }
  }

  // MARK: Tokens and errors

  /// Returns the next token. An error includes the current path.
  mutating func next() throws(FixtureTreeError) -> JSONTokenizer.Token {
    do throws(FixtureTreeError) {
      return try tokens.next()
    } catch {
      throw located(error)
    }
  }

  /// Returns an error at the latest token.
  func failure(_ message: String) -> FixtureTreeError {
    located(tokens.failure(message))
  }

  /// Returns an error for a violated rule for values, with advice.
  func failure(_ error: WireError) -> FixtureTreeError {
    guard case .model(let model) = error else { return failure(error.description) }
    let advice: String
    switch model {
    case .nestedArray: advice = "; put the inner array into a map, such as {\"values\": […]}"
    case .documentTooLarge: advice = " Split it, or move lists into a subcollection."
    case .reservedFieldName: advice = "; names that begin and end with two underscores belong to the service"
    default: advice = ""
    }
    return failure(model.description + advice)
  }

  private func located(_ error: FixtureTreeError) -> FixtureTreeError {
    var located = error
    located.path = String(decoding: path, as: UTF8.self)
    var names: [String] = []
    for (index, start) in fieldStarts.enumerated() {
      let end = index + 1 < fieldStarts.count ? fieldStarts[index + 1] : fieldNames.count
      names.append(FieldPath.quote(String(decoding: fieldNames[start..<end], as: UTF8.self)))
    }
    located.field = names.joined(separator: ".")
    return located
  }

  /// Consumes the next token, which must start an object.
  mutating func expectObject(_ what: @autoclosure () -> String) throws(FixtureTreeError) {
    guard try next() == .objectStart else { throw failure("\(what()) must be an object, {…}") }
  }

  /// Skips a value whose first token was just read.
  mutating func skipValue(_ token: JSONTokenizer.Token) throws(FixtureTreeError) {
    guard token == .objectStart || token == .arrayStart else { return }
    let outside = tokens.depth - 1
    while tokens.depth > outside { _ = try next() }
  }

  /// Records a key of the innermost object.
  /// - Throws: ``FixtureTreeError`` if the object already has the key.
  mutating func note(_ key: UnsafeRawBufferPointer, space: UInt64 = 0) throws(FixtureTreeError) {
    if let earlier = keys.insert(key, space: space, line: tokens.line) {
      throw failure(
        "\(FixtureTreeError.quote(key)) occurs twice in this object, first on line \(earlier); remove or rename one")
    }
  }

  // MARK: Paths

  /// Appends an ID to the path.
  /// - Throws: ``FixtureTreeError`` if the ID contains a `/`.
  mutating func enter(_ id: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    guard !id.contains(UInt8(ascii: "/")) else {
      throw failure("the id \(FixtureTreeError.quote(id)) contains \"/\", which separates ids in a path; rename it")
    }
    if !path.isEmpty { path.append(UInt8(ascii: "/")) }
    path.append(contentsOf: id)
  }

  /// Shortens the path to an earlier length.
  mutating func leave(to pathCount: Int) {
    path.removeLast(path.count - pathCount)
  }

  /// Replaces the whole path.
  mutating func setPath(_ bytes: some Collection<UInt8>) {
    path.removeAll(keepingCapacity: true)
    path.append(contentsOf: bytes)
  }

  /// Returns the current path after checking its IDs.
  /// - Throws: ``FixtureTreeError`` if an ID is invalid.
  func checkedPath() throws(FixtureTreeError) -> ResourcePath {
    do throws(ModelError) {
      return try ResourcePath(checking: path)
    } catch {
      throw failure(error.description)
    }
  }

  // MARK: Documents

  /// Starts the fields of a document inside the open documents.
  mutating func openDocument() {
    depth += 1
    if depth > encoders.count { encoders.append(CanonicalEncoder()) }
    encoder.reset()
    encoder.beginFields()
  }

  /// Ends the innermost document and returns it.
  /// - Throws: ``FixtureTreeError`` if the document is too large.
  mutating func closeDocument(_ key: DocumentKey, line: Int) throws(FixtureTreeError) -> FixtureDocument {
    defer { depth -= 1 }
    do throws(WireError) {
      encoder.endFields()
      // The copy is deliberate: the encoder keeps its buffer.
      let document = FixtureDocument(
        key: key, fields: EncodedFields(canonical: encoder.bytes.withUnsafeBytes { [UInt8]($0) }), line: line)
      // The size of a document is at most four times its bytes, so smaller ones need no exact count.
      if document.fields.bytes.count + key.path.bytes.count > Limits.documentBytesMax / 4 {
        guard try DocumentSize.bytes(key: key, fields: document.fields) <= Limits.documentBytesMax else {
          throw .model(.documentTooLarge)
        }
      }
      return document
    } catch {
      throw failure(error)
    }
  }

  /// Discards the innermost document.
  mutating func dropDocument() {
    depth -= 1
  }

  // MARK: Fields

  /// Starts a field of the innermost map.
  mutating func openField(_ name: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    fieldStarts.append(fieldNames.count)
    fieldNames.append(contentsOf: name)
    try encode { (encoder) throws(WireError) in try encoder.beginEntry(key: name) }
  }

  /// Ends a field after its value.
  mutating func closeField() {
    encoder.endEntry()
    if let start = fieldStarts.popLast() { fieldNames.removeLast(fieldNames.count - start) }
  }

  /// Runs an operation on the encoder. A violated rule becomes an error at the latest token.
  @inline(__always)
  mutating func encode(_ body: (inout CanonicalEncoder) throws(WireError) -> Void) throws(FixtureTreeError) {
    do throws(WireError) {
      try body(&encoder)
    } catch {
      throw failure(error)
    }
  }
}
