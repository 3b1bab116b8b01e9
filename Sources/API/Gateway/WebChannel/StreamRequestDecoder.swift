import DatabaseService
import DocumentModel
import WireFormat

/// Reads the requests of streams that channels carry. One for all channels: parsers are lent.
final class StreamRequestDecoder: Sendable {
  private struct JSONDecodingContext {
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
  }

  private let service: FirestoreService
  private let tools = ObjectPool<JSONDecodingContext>()

  init(_ service: FirestoreService) { self.service = service }

  /// Reads a request on a stream, whose database it may name.
  /// - Throws: ``WireError`` for what is no request, or names another database than the stream's.
  func decode<R>(
    _ request: [UInt8], _ database: inout StreamDatabase,
    _ body: (JSONMessageDecoder, JSONValue, DatabaseID) throws(WireError) -> R
  ) throws(WireError) -> (R, DatabaseID) {
    let lent = tools.take() ?? JSONDecodingContext()
    defer { tools.give(lent) }
    return try request.withRawBytes { (text) throws(WireError) in
      try lent.document.withParsed(text) { (root) throws(WireError) in
        // The names in it are the same in every edition.
        lent.decoder.reset(.standard)
        let named = try lent.decoder.streamDatabase(root)
        let id: DatabaseID
        do throws(ModelError) { id = try database.of(named) } catch { throw .model(error) }
        let edition = service.edition(of: id)
        guard request.count <= edition.requestBytesMax else {
          throw .invalidJSON("Request payload size exceeds the limit: \(edition.requestBytesMax) bytes.")
        }
        lent.decoder.reset(edition)
        return (try body(lent.decoder, root, id), id)
      }
    }
  }
}
