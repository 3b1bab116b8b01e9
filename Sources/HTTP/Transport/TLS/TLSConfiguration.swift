import COpenSSL
import Glibc

/// The certificate and key for TLS.
package struct TLSConfiguration: Sendable, Equatable {
  /// The path of a PEM file with the server's certificate, followed by the chain to a known authority.
  package var certificateFile: String
  /// The path of a PEM file with the certificate's private key, without a passphrase.
  package var keyFile: String

  /// Creates a configuration. The files are read when a server is created, and again by
  /// `HTTPServer.reloadCertificate`.
  package init(certificateFile: String, keyFile: String) {
    self.certificateFile = certificateFile
    self.keyFile = keyFile
  }
}

extension TLSConfiguration {
  /// Returns the time at which the certificate expires, in microseconds since 1970. Reads both files, as a server
  /// does.
  /// - Throws: ``TransportError/badCertificate(file:reason:)`` if a file cannot be used, or if the two do not belong
  ///   together.
  package func expiry() throws(TransportError) -> Int64 {
    let context = try TLSContext(self)
    var time = tm()
    guard let certificate = SSL_CTX_get0_certificate(context.raw), let end = X509_get0_notAfter(certificate),
      ASN1_TIME_to_tm(end, &time) == 1
    else { throw .badCertificate(file: certificateFile, reason: "its expiry time cannot be read") }
    return Int64(timegm(&time)) * 1_000_000
  }
}
