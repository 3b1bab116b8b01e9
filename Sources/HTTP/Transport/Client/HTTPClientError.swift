/// Why a request got no answer.
package enum HTTPClientError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The host's name has no address.
  case hostNotFound(host: String)
  /// Nothing accepts connections there; `reason` is the system's text.
  case notConnected(address: String, reason: String)
  /// The peer took or sent no byte for so long.
  case timedOut(address: String, seconds: Int)
  /// The connection ended before the answer was whole.
  case closedEarly(address: String)
  /// What came is no HTTP/1.1 answer.
  case malformed(address: String)
  /// The answer is larger than the client takes.
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
