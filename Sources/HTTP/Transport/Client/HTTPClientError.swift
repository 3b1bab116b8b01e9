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
    case .hostNotFound(let host): "cannot find the address of '\(host)'; check the name"
    case .notConnected(let address, let reason): "cannot connect to \(address): \(reason)"
    case .timedOut(let address, let seconds): "\(address) sent no data for \(seconds) seconds"
    case .closedEarly(let address): "\(address) closed the connection before the response was complete"
    case .malformed(let address): "the response from \(address) is not HTTP/1.1"
    case .tooLarge(let bytesMax): "the response is larger than \(bytesMax) bytes"
    }
  }
}
