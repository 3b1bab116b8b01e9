import COpenSSL
import Glibc

/// What a server needs to speak TLS.
package struct TLSConfiguration: Sendable, Equatable {
  /// A file with the server's certificate in PEM form, and after it those that lead to a known authority.
  package var certificateFile: String
  /// A file with the certificate's private key in PEM form, without a passphrase.
  package var keyFile: String

  /// Names the two files; they are read when a server is made, and again by `HTTPServer.reloadCertificate`.
  package init(certificateFile: String, keyFile: String) {
    self.certificateFile = certificateFile
    self.keyFile = keyFile
  }
}

extension TLSConfiguration {
  /// When the certificate ends, in microseconds since 1970. Reads both files, as a server does.
  /// - Throws: ``TransportError/badCertificate(file:reason:)`` when they cannot be used, or do not belong together.
  package func expiry() throws(TransportError) -> Int64 {
    let context = try TLSContext(self)
    var time = tm()
    guard let certificate = SSL_CTX_get0_certificate(context.raw), let end = X509_get0_notAfter(certificate),
      ASN1_TIME_to_tm(end, &time) == 1
    else { throw .badCertificate(file: certificateFile, reason: "it does not say when it ends") }
    return Int64(timegm(&time)) * 1_000_000
  }
}
