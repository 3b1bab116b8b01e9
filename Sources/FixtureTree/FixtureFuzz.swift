import DocumentModel

/// Entry point for fuzzing: takes any bytes, must not trap, and checks what must hold for bytes it accepts.
package enum FixtureFuzz {
  /// Reads bytes as a file of every format, in one piece and in small pieces.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    guard let database = DatabaseID(project: "fuzz"), let shape = try? CollectionShape(["a", "a/*/b"]) else { return }
    let input = [UInt8](bytes)
    for format in [nil, DocumentReader.Format.fixtureTree, .collectionsTree, .documentLines] {
      let whole = read(ByteSource(input), database, shape, format)
      let pieces = read(ByteSource(input, chunkBytesMax: 3), database, shape, format)
      precondition(whole == pieces, "how a file is cut into pieces does not matter")
    }
  }

  private static func read(
    _ source: ByteSource, _ database: DatabaseID, _ shape: CollectionShape, _ format: DocumentReader.Format?
  ) -> Outcome {
    var documents: [FixtureDocument] = []
    do throws(FixtureTreeError) {
      var reader = try DocumentReader(source, database: database, shape: shape, format: format)
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
