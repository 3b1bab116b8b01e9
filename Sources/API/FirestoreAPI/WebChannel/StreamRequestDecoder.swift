import DatabaseService
import DocumentModel
import WireFormat

/// Decodes the requests of streams on channels. All channels share its pool of parsers.
final class StreamRequestDecoder: Sendable {
  private struct JSONDecodingContext {
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
  }

  private let service: FirestoreService
  private let contexts = ObjectPool<JSONDecodingContext>()

  init(_ service: FirestoreService) { self.service = service }

  /// Decodes a request on a stream. The request may contain the stream's database.
  ///
  /// - Throws: ``WireError`` if the request is malformed, or contains another database than the stream's.
  func decode<R>(
    _ request: [UInt8], _ database: inout StreamDatabase,
    _ body: (JSONMessageDecoder, JSONValue, DatabaseID) throws(WireError) -> R
  ) throws(WireError) -> (R, DatabaseID) {
    let context = contexts.take() ?? JSONDecodingContext()
    defer { contexts.give(context) }
    return try request.withRawBytes { (text) throws(WireError) in
      try context.document.withParsed(text) { (root) throws(WireError) in
        // Database names have the same form in every edition.
        context.decoder.reset(.standard)
        let named = try context.decoder.streamDatabase(root)
        let id: DatabaseID
        do throws(ModelError) { id = try database.of(named) } catch { throw .model(error) }
        let edition = service.edition(of: id)
        guard request.count <= edition.requestBytesMax else {
          throw .invalidJSON("Request payload size exceeds the limit: \(edition.requestBytesMax) bytes.")
        }
        context.decoder.reset(edition)
        return (try body(context.decoder, root, id), id)
      }
    }
  }
}
