import Compression
import DocumentModel
import WireFormat

/// The entry point for fuzzing. It must not trap on any bytes, and checks properties of the bytes that it accepts.
package enum FixtureFuzz {
  /// Reads bytes as a file of every format, in one piece and in small pieces.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    guard let database = DatabaseID(project: "fuzz"), let shape = try? CollectionShape(["a", "a/*/b"]) else { return }
    let input = [UInt8](bytes)
    for format in [nil, FixtureReader.Format.fixtureTree, .collectionsTree, .documentLines] {
      let whole = read(ByteSource(input), database, shape, format)
      let pieces = read(ByteSource(input, chunkBytesMax: 3), database, shape, format)
      precondition(whole == pieces, "the result depends on how the file is split into pieces")
      if whole.error == nil { checkRoundTrip(whole.documents, database) }
    }
  }

  /// Reads bytes as records and as CSV, compressed or not, in one piece and in small pieces.
  package static func records(_ bytes: UnsafeRawBufferPointer) {
    guard let database = DatabaseID(project: "fuzz"), let collection = try? ResourcePath("a") else { return }
    let input = [UInt8](bytes)
    var options = ReadOptions()
    options.rewritesReferences = true
    for format in [nil, FixtureReader.Format.records, .recordsByCollection, .csv] {
      // An object of arrays names its collections. CSV is read with two delimiters.
      options.collection = format == .recordsByCollection ? nil : collection
      options.delimiter = format == nil ? UInt8(ascii: ";") : nil
      let whole = read(ByteSource(input), database, nil, format, options)
      let pieces = read(ByteSource(input, chunkBytesMax: 3), database, nil, format, options)
      precondition((whole.error == nil) == (pieces.error == nil), "whether a file is read depends on its pieces")
      // The content before damaged compressed bytes depends on the pieces.
      if whole.error != nil, CompressionFormat(head: input) != nil { continue }
      // Random IDs differ, also in the paths of errors.
      precondition(
        whole.error?.message == pieces.error?.message && whole.error?.line == pieces.error?.line
          && whole.error?.column == pieces.error?.column,
        "the error depends on how the file is split into pieces")
      precondition(whole.documents.count == pieces.documents.count, "the documents depend on how the file is split")
      precondition(
        zip(whole.documents, pieces.documents).allSatisfy { $0.fields == $1.fields },
        "the fields depend on how the file is split into pieces")
      if whole.error == nil {
        checkRoundTrip(whole.documents, database)
        checkTable(whole.documents, database)
      }
    }
  }

  /// Checks that the documents of each collection are unchanged after they are written as CSV and read again.
  private static func checkTable(_ documents: [FixtureDocument], _ database: DatabaseID) {
    var byKey: [DocumentKey: EncodedFields] = [:]
    for document in documents { byKey[document.key] = document.fields }
    for collection in Set(byKey.keys.map(\.collection)) {
      let keys = byKey.keys.filter { $0.collection == collection }.sorted()
      do {
        var writer = try DocumentFileWriter(.csv, database: database, below: collection, patterns: [])
        var text: [UInt8] = []
        for key in keys { try writer.add(key, byKey[key] ?? .none) { text += $0 } }
        try writer.finish { text += $0 }
        var options = ReadOptions()
        options.collection = collection
        let again = read(ByteSource(text), database, nil, .csv, options)
        precondition(again.error == nil, "the reader rejects the table: \(String(describing: again.error))")
        precondition(again.documents.map(\.key) == keys, "the IDs changed in a table")
        precondition(again.documents.allSatisfy { byKey[$0.key] == $0.fields }, "fields changed in a table")
      } catch {
        preconditionFailure("the table cannot be written: \(error)")
      }
    }
  }

  /// Checks that documents are unchanged after they are written and read again.
  private static func checkRoundTrip(_ documents: [FixtureDocument], _ database: DatabaseID) {
    var byKey: [DocumentKey: EncodedFields] = [:]
    for document in documents { byKey[document.key] = document.fields }
    var collections: [ResourcePath] = []
    for key in byKey.keys {
      var path = key.collection
      collections.append(path)
      while path.segmentCount > 1 {
        path = path.parent.parent
        collections.append(path)
      }
    }
    do {
      var writer = try FixtureTreeWriter(database: database, patterns: CollectionShape.patterns(of: collections))
      for key in byKey.keys.sorted() { try writer.write(key, byKey[key] ?? .none) }
      try writer.finish()
      let again = read(ByteSource(writer.takeOutput()), database, nil, .fixtureTree)
      precondition(again.error == nil, "the reader rejects the writer's output")
      precondition(again.documents.allSatisfy { byKey[$0.key] == $0.fields }, "fields changed in a round trip")
      precondition(again.documents.count == byKey.count, "the number of documents changed in a round trip")
    } catch {
      preconditionFailure("the writer rejects documents that were read: \(error)")
    }
  }

  private static func read(
    _ source: ByteSource, _ database: DatabaseID, _ shape: CollectionShape?, _ format: FixtureReader.Format?,
    _ options: ReadOptions = ReadOptions()
  ) -> Outcome {
    var documents: [FixtureDocument] = []
    do throws(FixtureTreeError) {
      var reader = try FixtureReader(source, database: database, shape: shape, format: format, options: options)
      while let document = try reader.next() { documents.append(document) }
      return Outcome(documents: documents, error: nil)
    } catch {
      return Outcome(documents: documents, error: error)
    }
  }

  private struct Outcome: Equatable {
    let documents: [FixtureDocument]
    let error: FixtureTreeError?
  }
}
