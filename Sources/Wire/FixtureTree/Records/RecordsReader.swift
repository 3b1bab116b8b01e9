package import DocumentModel

/// A reader for JSON as other programs write it: objects without paths, each of which becomes a document.
///
///     [{"id": "ann", "name": "Ann"}, {"id": "bob", "name": "Bob"}]
///     {"id": "ann", "name": "Ann"} {"id": "bob", "name": "Bob"}
///     {"users": [{"id": "ann", "name": "Ann"}], "teams": []}
///
/// The first two forms need ``ReadOptions/collection``. The second is NDJSON if each object is on a line of its own. In
/// the third, each key is a collection. ``RecordID`` has the rules for IDs. Values are plain JSON, special values of
/// fixture trees such as `{"$timestamp": …}`, and ``SDKValue``s. Other keys that begin with `$` are ordinary keys.
///
/// Memory: the read buffer, one document, and hashes of the IDs of one array (``KeyTable``).
package struct RecordsReader: ~Copyable {
  private var builder: DocumentBuilder
  private let isByCollection: Bool
  private var place = Place.start
  private var source: IDSource
  private var newID = RandomDocumentID()
  /// The collection of the records that follow.
  private var collection: [UInt8] = []
  /// The ID members of the current record that were found, by their index in ``RecordID/names``. A member that the
  /// options name has index 0.
  private var found: [(hasID: Bool, id: [UInt8])] = [(false, []), (false, []), (false, [])]
  private var arrayCount = 0
  private var failed: FixtureTreeError?

  private enum Place {
    case start
    /// Between values of the file.
    case top
    /// Among the keys of the file's object.
    case collections
    case array
  }

  /// The source of the IDs of an array's records.
  private enum IDSource: Equatable {
    /// The first record decides.
    case undecided
    /// A member that an option names.
    case named
    /// A member of ``RecordID/names``.
    case automatic(Int)
    /// Random IDs, because the first record has no such member.
    case random
    /// Random IDs, because an option says so.
    case generated
  }

  /// Creates a reader at the start of a file. References without a database refer to `database`. With
  /// `isByCollection`, the file is an object of arrays.
  package init(
    _ source: ByteSource, database: DatabaseID, options: ReadOptions, isByCollection: Bool = false,
    bufferBytes: Int = JSONTokenizer.bufferBytesDefault
  ) {
    builder = DocumentBuilder(
      source, database: database, isByCollection ? .oneValue : .manyValues, bufferBytes: bufferBytes, options: options)
    self.isByCollection = isByCollection
    self.source = Self.source(options)
  }

  /// The current size of all buffers, in bytes.
  package var bufferedBytes: Int { builder.bufferedBytes }
  /// The facts about the part of the file that was read.
  package var tally: ReadTally { builder.tally }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` if the file violates the format or the rules for writes. Later calls throw it
  ///   again.
  package mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    if let failed { throw failed }
    do throws(FixtureTreeError) {
      return try step()
    } catch {
      failed = error
      throw error
    }
  }

  private static func source(_ options: ReadOptions) -> IDSource {
    options.generatesIDs ? .generated : options.idMember != nil ? .named : .undecided
  }

  // MARK: Structure

  private mutating func step() throws(FixtureTreeError) -> FixtureDocument? {
    while true {
      builder.setPath([])
      switch place {
      case .start:
        try start()
      case .top:
        switch try builder.next() {
        case .end: return nil
        case .arrayStart: place = .array
        case .objectStart: return try record()
        default: throw builder.failure("expected an object or an array of objects; each document is an object, {…}")
        }
      case .collections:
        guard try builder.next() == .key else {
          builder.keys.close()
          place = .top
          continue
        }
        try enterCollection()
      case .array:
        switch try builder.next() {
        case .arrayEnd: leaveArray()
        case .objectStart: return try record()
        default: throw builder.failure("an element is not an object; each document is an object, {…}")
        }
      }
    }
  }

  private mutating func start() throws(FixtureTreeError) {
    builder.keys.open()
    if let path = builder.options.collection { collection = path.bytes }
    if isByCollection {
      try builder.expectObject("a file of arrays by collection")
      place = .collections
      return
    }
    guard !collection.isEmpty else {
      _ = try builder.next()
      throw builder.failure(
        "the objects have no paths, so name the collection that they are for: --collection users")
    }
    place = .top
  }

  private mutating func enterCollection() throws(FixtureTreeError) {
    let key = builder.tokens.text
    try builder.note(key)
    builder.setPath(key)
    let path = try builder.checkedPath()
    guard path.isCollection else {
      throw builder.failure("\(FixtureTreeError.quote(key)) is the path of a document; write that of a collection")
    }
    arrayCount += 1
    if builder.options.collection == nil {
      collection = path.bytes
    } else if arrayCount > 1 {
      throw builder.failure(
        "the file has several arrays; leave out --collection, so that each key is a collection")
    }
    guard try builder.next() == .arrayStart else {
      throw builder.failure(
        "\"\(path)\" must be an array of objects, like the first member of the file; for maps of documents by ID, "
          + "write a fixture tree")
    }
    builder.keys.open()
    source = Self.source(builder.options)
    place = .array
  }

  private mutating func leaveArray() {
    guard isByCollection else {
      place = .top
      return
    }
    builder.keys.close()
    place = .collections
  }

  // MARK: Records

  /// Reads the rest of an object whose opening brace was read.
  private mutating func record() throws(FixtureTreeError) -> FixtureDocument {
    let (line, column) = (builder.tokens.line, builder.tokens.column)
    builder.setPath(collection)
    builder.openDocument()
    builder.keys.open()
    for index in found.indices { found[index].hasID = false }
    while try builder.next() == .key {
      let name = builder.tokens.text
      switch source {
      case .named:
        if let member = builder.options.idMember, name.elementsEqual(member.utf8) {
          try idMember(0, isReserved: RecordID.index(of: name) == RecordID.reserved)
          continue
        }
      case .undecided, .automatic, .random:
        if let index = RecordID.index(of: name),
          source == .undecided || source == .automatic(index) || source == .random
        {
          guard source != .random else {
            throw builder.failure(
              "the object has \(FixtureTreeError.quote(name)), but the first object has none; give --id "
                + "\(String(decoding: name, as: UTF8.self)), or --generate-ids")
          }
          try idMember(index, isReserved: index == RecordID.reserved)
          continue
        }
      case .generated:
        if RecordID.index(of: name) == RecordID.reserved {
          try builder.skipValue(try builder.next())
          continue
        }
      }
      try builder.field(name, .record)
    }
    builder.keys.close()
    do throws(FixtureTreeError) {
      try builder.enterRecord(try id(), line: line)
      guard let key = DocumentKey(try builder.checkedPath()) else { throw builder.failure("expected a document") }
      return try builder.closeDocument(key, line: line)
    } catch {
      var located = error
      (located.line, located.column) = (line, column)
      throw located
    }
  }

  /// Reads the value of a member that can be the ID.
  private mutating func idMember(_ index: Int, isReserved: Bool) throws(FixtureTreeError) {
    let name = builder.tokens.text
    let isField = !isReserved && !builder.options.dropsIDMember
    try builder.note(name)
    if isField { try builder.openField(name) }
    let token = try builder.next()
    guard token == .string || (token == .number && builder.tokens.numberIsInteger) else {
      throw builder.failure("an ID must be a string or a whole number; \(RecordID.remedy)")
    }
    found[index].hasID = true
    found[index].id.removeAll(keepingCapacity: true)
    found[index].id.append(contentsOf: builder.tokens.text)
    guard isField else { return }
    try builder.value(token, .record)
    builder.closeField()
  }

  /// Returns the ID of the record that was read.
  private mutating func id() throws(FixtureTreeError) -> [UInt8] {
    if source == .undecided {
      source = found.firstIndex { $0.hasID }.map { .automatic($0) } ?? .random
    }
    let index: Int
    switch source {
    case .undecided, .random, .generated:
      builder.tally.generatedIDs += 1
      return newID.next()
    case .named: index = 0
    case .automatic(let chosen): index = chosen
    }
    guard found[index].hasID else {
      let name = source == .named ? builder.options.idMember ?? "" : "\(RecordID.names[index])"
      let reason = source == .named ? "" : ", which the first object has"
      throw builder.failure("the object has no \"\(name)\"\(reason); add it, \(RecordID.remedy)")
    }
    return found[index].id
  }
}
