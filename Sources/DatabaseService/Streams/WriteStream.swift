package import DocumentModel

/// An answer on a Write stream (`WriteResponse`).
package struct WriteStreamResponse: Sendable {
  /// The stream, in its first answer; else empty.
  package var streamID = ""
  /// Never empty; a client sends it back with its next batch.
  package var streamToken: [UInt8]
  /// One for each write of the batch; none in the first answer.
  package var results: [WriteResult] = []
  /// When the batch was committed.
  package var commitTime: Timestamp?

  /// An answer that carries a token only.
  package init(streamToken: [UInt8]) { self.streamToken = streamToken }
}

/// One Write stream: batches, applied one after the other, answered in order (listen-and-webchannel.md, section 2).
///
/// Belongs to the loop's thread of its client. A batch that fails ends the stream, and nothing behind it is applied.
package final class WriteStream {
  /// Opens a stream to a database. `wake` is called, on any thread, when there is something to pull.
  /// - Throws: as ``Service/access(to:as:)``.
  package init(_ service: Service, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void) throws {
    throw Status(.unimplemented, "This version of hearth does not serve the streams Listen and Write yet.")
  }

  /// Takes a request.
  /// - Throws: `INVALID_ARGUMENT` for what ends the stream.
  package func receive(_ request: WriteStreamRequest) throws {}

  /// The next answer, where there is one.
  /// - Throws: ``Status`` of the batch that ended the stream, after the answers to those before it.
  package func next() throws -> WriteStreamResponse? { nil }

  /// Ends the stream: batches not yet begun are not applied.
  package func end() {}
}
