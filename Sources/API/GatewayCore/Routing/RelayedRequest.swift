package import DatabaseService
package import DocumentModel
package import Transport

/// The name of the header field with the ID under which a node relays a request; see ``DocumentModel/RequestID``.
package let requestIDHeader: StaticString = "hearth-request-id"

extension HTTPRequest {
  /// Returns the ID under which another node relayed the request, or `nil` if it arrives once.
  ///
  /// Only the field of a request from another node counts. A client could otherwise learn the outcome of a commit of
  /// another one, or take its ID.
  /// - Throws: `INVALID_ARGUMENT` if the field of a node is malformed, because the request would then be done twice.
  package func relayedID() throws(Status) -> RequestID? {
    guard isFromPeer, let text = header(requestIDHeader) else { return nil }
    guard let id = RequestID(text: text) else {
      throw Status(.invalidArgument, "The node that relays the request sends a malformed hearth-request-id.")
    }
    return id
  }

  /// Whether the request came over a connection between nodes. No server accepts such connections yet.
  private var isFromPeer: Bool { false }
}
