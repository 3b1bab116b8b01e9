/// The reason why a request got no complete response.
package enum HTTPClientError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The problem that makes a server's certificate unusable.
  package enum CertificateProblem: Equatable, Sendable {
    case expired
    case notYetValid
    /// No trusted authority issued it. `reason` is OpenSSL's text.
    case notTrusted(reason: String)
    /// It is for other names than the host of the request.
    case otherName(host: String)
  }

  /// libcurl cannot be loaded.
  case libraryMissing(reason: String)
  /// The host name has no address.
  case hostNotFound(host: String)
  /// The connection failed. `reason` is the system's text.
  case notConnected(address: String, reason: String)
  /// The file with certificates of authorities cannot be used or, if `file` is `nil`, the system has no such file.
  case authoritiesUnusable(file: String?)
  /// The server's certificate is not valid for this connection.
  case certificateRejected(address: String, CertificateProblem)
  /// The server does not speak TLS.
  case notTLS(address: String)
  /// The TLS handshake failed for another reason.
  case handshakeFailed(address: String, reason: String)
  /// The peer neither took nor sent a byte for this time.
  case timedOut(address: String, milliseconds: Int)
  /// The response was not complete after this time.
  case tookTooLong(address: String, milliseconds: Int)
  /// The connection ended before the response was complete.
  case closedEarly(address: String)
  /// The received bytes are not an HTTP response.
  case malformed(address: String)
  /// The response exceeds the client's limit.
  case tooLarge(bytesMax: Int)
  /// ``HTTPCancellation/cancel()`` was called.
  case cancelled(address: String)
  /// Another reason, as libcurl describes it.
  case failed(address: String, reason: String)

  package var description: String {
    switch self {
    case .libraryMissing(let reason):
      "cannot load libcurl: \(reason); install it, for example the Debian package libcurl4"
    case .hostNotFound(let host): "cannot find the address of '\(host)'; check the name"
    case .notConnected(let address, let reason): "cannot connect to \(address): \(reason)"
    case .authoritiesUnusable(let file?): "\(file) cannot be used as a file of trusted certificates in PEM format"
    case .authoritiesUnusable(nil):
      "this system has no certificates of authorities; install them, for example the Debian package ca-certificates"
    case .certificateRejected(let address, let problem): "\(address) is not trusted: \(problem.text)"
    case .notTLS(let address): "\(address) does not use TLS"
    case .handshakeFailed(let address, let reason): "the TLS handshake with \(address) failed: \(reason)"
    case .timedOut(let address, let milliseconds):
      "\(address) sent no data for \(Self.seconds(milliseconds)) seconds"
    case .tookTooLong(let address, let milliseconds):
      "the response from \(address) was not complete after \(Self.seconds(milliseconds)) seconds"
    case .closedEarly(let address): "\(address) closed the connection before the response was complete"
    case .malformed(let address): "the response from \(address) is not HTTP/1.1"
    case .tooLarge(let bytesMax): "the response is larger than \(bytesMax) bytes"
    case .cancelled(let address): "the request to \(address) was cancelled"
    case .failed(let address, let reason): "the request to \(address) failed: \(reason)"
    }
  }

  private static func seconds(_ milliseconds: Int) -> String {
    milliseconds.isMultiple(of: 1000) ? "\(milliseconds / 1000)" : "\(Double(milliseconds) / 1000)"
  }
}

extension HTTPClientError.CertificateProblem {
  fileprivate var text: String {
    switch self {
    case .expired: "its certificate has expired"
    case .notYetValid: "its certificate is not valid yet"
    case .notTrusted(let reason): "no trusted authority issued its certificate (\(reason))"
    case .otherName(let host): "its certificate is not for '\(host)'"
    }
  }
}
