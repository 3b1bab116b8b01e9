import DocumentModel

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
    _ source: ByteSource, _ database: DatabaseID, _ shape: CollectionShape?, _ format: FixtureReader.Format?
  ) -> Outcome {
    var documents: [FixtureDocument] = []
    do throws(FixtureTreeError) {
      var reader = try FixtureReader(source, database: database, shape: shape, format: format)
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
