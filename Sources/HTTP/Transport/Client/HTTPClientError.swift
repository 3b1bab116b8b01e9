/// The reason why a request got no complete response.
package enum HTTPClientError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The host name has no address.
  case hostNotFound(host: String)
  /// The connection failed. `reason` is the system's text.
  case notConnected(address: String, reason: String)
  /// The peer neither took nor sent a byte for this many seconds.
  case timedOut(address: String, seconds: Int)
  /// The connection ended before the response was complete.
  case closedEarly(address: String)
  /// The received bytes are not an HTTP/1.1 response.
  case malformed(address: String)
  /// The response exceeds the client's limit.
  case tooLarge(bytesMax: Int)

  package var description: String {
    switch self {
    case .hostNotFound(let host): "the host '\(host)' has no address; check the name"
    case .notConnected(let address, let reason): "no connection to \(address): \(reason)"
    case .timedOut(let address, let seconds): "\(address) did not answer within \(seconds) seconds"
    case .closedEarly(let address): "\(address) closed the connection before its answer was whole"
    case .malformed(let address): "what answers at \(address) does not speak HTTP/1.1"
    case .tooLarge(let bytesMax): "the answer is larger than \(bytesMax) bytes"
    }
  }
}
