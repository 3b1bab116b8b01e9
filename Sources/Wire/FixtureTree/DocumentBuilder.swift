import DocumentModel
import WireFormat

/// What the readers of all formats share: the tokens, the path, the fields of the open documents, and where an error
/// belongs.
///
/// Documents nest: a document's fields are complete only at its closing brace, and documents of its sub-collections
/// may stand in between. So there is one encoder per open document, reused for the next one of that depth.
struct DocumentBuilder: ~Copyable {
  /// The tokens of the file.
  var tokens: JSONTokenizer
  /// The keys of the open objects.
  var keys = KeyTable()
  /// The ids from the root to what is being read, joined by `/`.
  private(set) var path: [UInt8] = []
  /// Receives the fields of the innermost open document.
  var encoder: CanonicalEncoder {
    get { encoders[depth - 1] }
    _modify { yield &encoders[depth - 1] }
  }
  /// The documents root of the database that the documents are for, with a `/` at its end.
  let documentsRoot: [UInt8]
  /// Bytes values on their way from base64, and reference names.
  var scratch: [UInt8] = []

  private var encoders: [CanonicalEncoder] = []
  private var depth = 0
  /// The names of the open fields, one behind the other, and where each starts.
  private var fieldNames: [UInt8] = []
  private var fieldStarts: [Int] = []

  init(_ source: ByteSource, database: DatabaseID, _ extent: JSONTokenizer.Extent, bufferBytes: Int) {
    tokens = JSONTokenizer(source, extent, bufferBytes: bufferBytes)
    documentsRoot = Array(database.documentsRoot.utf8) + [UInt8(ascii: "/")]
  }

  /// The memory that buffers hold now, in bytes.
  var bufferedBytes: Int {
    encoders.reduce(tokens.bufferedBytes + keys.bufferedBytes + path.capacity + scratch.capacity) {
      $0 + $1.bytes.capacity
    }
  }

  // MARK: Tokens and errors

  /// The next token; an error carries the path.
  mutating func next() throws(FixtureTreeError) -> JSONTokenizer.Token {
    do throws(FixtureTreeError) {
      return try tokens.next()
    } catch {
      throw located(error)
    }
  }

  /// An error at the latest token.
  func failure(_ message: String) -> FixtureTreeError {
    located(tokens.failure(message))
  }

  /// An error that says which rule for values is broken, and what helps.
  func failure(_ error: WireError) -> FixtureTreeError {
    guard case .model(let model) = error else { return failure(error.description) }
    let advice: String
    switch model {
    case .nestedArray: advice = "; put the inner array into a map, such as {\"values\": […]}"
    case .documentTooLarge: advice = " Split it, or move lists into a sub-collection."
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

  /// Takes the next token, which must start an object.
  mutating func expectObject(_ what: @autoclosure () -> String) throws(FixtureTreeError) {
    guard try next() == .objectStart else { throw failure("\(what()) must be an object, {…}") }
  }

  /// Skips one value, whose first token was just read.
  mutating func skipValue(_ token: JSONTokenizer.Token) throws(FixtureTreeError) {
    guard token == .objectStart || token == .arrayStart else { return }
    let outside = tokens.depth - 1
    while tokens.depth > outside { _ = try next() }
  }

  /// Notes a key of the innermost object.
  /// - Throws: ``FixtureTreeError`` when it stands there already.
  mutating func note(_ key: UnsafeRawBufferPointer, space: UInt64 = 0) throws(FixtureTreeError) {
    if let earlier = keys.insert(key, space: space, line: tokens.line) {
      throw failure(
        "\(FixtureTreeError.quote(key)) stands twice in this object, first in line \(earlier); remove or rename one")
    }
  }

  // MARK: Paths

  /// Goes into a collection or document.
  /// - Throws: ``FixtureTreeError`` when the id holds a `/`.
  mutating func enter(_ id: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    guard !id.contains(UInt8(ascii: "/")) else {
      throw failure("the id \(FixtureTreeError.quote(id)) contains \"/\", which separates ids in a path; rename it")
    }
    if !path.isEmpty { path.append(UInt8(ascii: "/")) }
    path.append(contentsOf: id)
  }

  /// Goes back to where the path had that many bytes.
  mutating func leave(to pathCount: Int) {
    path.removeLast(path.count - pathCount)
  }

  /// Replaces the whole path.
  mutating func setPath(_ bytes: some Collection<UInt8>) {
    path.removeAll(keepingCapacity: true)
    path.append(contentsOf: bytes)
  }

  /// The path so far, its ids checked.
  /// - Throws: ``FixtureTreeError`` for an id that breaks a rule.
  func checkedPath() throws(FixtureTreeError) -> ResourcePath {
    do throws(ModelError) {
      return try ResourcePath(checking: path)
    } catch {
      throw failure(error.description)
    }
  }

  // MARK: Documents

  /// Starts the fields of a document inside those that are open.
  mutating func openDocument() {
    depth += 1
    if depth > encoders.count { encoders.append(CanonicalEncoder()) }
    encoder.reset()
    encoder.beginFields()
  }

  /// Ends the innermost document.
  /// - Throws: ``FixtureTreeError`` when it is too large.
  mutating func closeDocument(_ key: DocumentKey, line: Int) throws(FixtureTreeError) -> FixtureDocument {
    defer { depth -= 1 }
    do throws(WireError) {
      encoder.endFields()
      // A copy of its own: the encoder keeps its buffer.
      let document = FixtureDocument(
        key: key, fields: EncodedFields(canonical: encoder.bytes.withUnsafeBytes { [UInt8]($0) }), line: line)
      // No document counts more than four times its bytes, so most need no closer look.
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

  /// Drops the innermost document.
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

  /// Hands something to the encoder; a broken rule becomes an error at the latest token.
  @inline(__always)
  mutating func encode(_ body: (inout CanonicalEncoder) throws(WireError) -> Void) throws(FixtureTreeError) {
    do throws(WireError) {
      try body(&encoder)
    } catch {
      throw failure(error)
    }
  }
}
