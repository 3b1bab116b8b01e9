import DatabaseService
import DocumentModel
import Transport
import WireFormat

/// Writes the response to a ListDocuments request in slices of work.
final class DocumentListTask<Writer: MessageWriter> {
  private let cursor: ListDocumentsCursor
  private let root: [UInt8]
  private var response: ListDocumentsResponse
  private var out: Writer

  /// Begins a response in `out`.
  init(_ cursor: ListDocumentsCursor, mask: FieldMask?, in database: DatabaseID, to out: Writer) {
    self.cursor = cursor
    self.out = out
    root = database.documentsRootBytes
    response = ListDocumentsResponse(in: database, mask: mask)
  }

  /// Works for some hundred microseconds. Returns the writer after the last slice, otherwise `nil`.
  func slice() throws -> Writer? {
    let nextPageToken = try cursor.slice(responseBytes: { out.bytes.count }) { found in
      guard let stored = found.stored else { return try response.append(found.key, nil, to: &out) }
      try EncodedDocument.with(found.key, stored, root: root) { (encoded) throws(WireError) in
        try response.append(found.key, encoded, to: &out)
      }
    }
    guard let nextPageToken else { return nil }
    response.end(nextPageToken: nextPageToken, to: &out)
    return out
  }
}
