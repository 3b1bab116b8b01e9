package import DocumentModel
package import Transport

extension HTTPRequest {
  /// The ID that all tries of a request have which another node relays, or `nil` if the request arrives once.
  ///
  /// This is the only place where an ID enters the server. It comes from a connection between nodes, and never from a
  /// header field of a client, which could learn the outcome of another client's commit with it.
  package var requestID: RequestID? { relayedRequestID.flatMap { RequestID(bytes: $0) } }
}
