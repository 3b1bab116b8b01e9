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
