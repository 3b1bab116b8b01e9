import Accounts
import Synchronization

/// The key files of identity providers elsewhere: read at the start, and again when they change.
///
/// A file that cannot be used then leaves the keys that came from it last, and `warn` is told.
final class IssuerFiles: Sendable {
  private let files: [HearthConfiguration.IssuerFile]
  private let issuers: TrustedIssuers
  private let configuration: HearthConfiguration
  private let stamps: Mutex<[FileStamp]>

  /// Reads the files.
  /// - Throws: ``HearthError/data(_:)`` for the first that cannot be used.
  init(_ configuration: HearthConfiguration, _ issuers: TrustedIssuers) throws(HearthError) {
    files = configuration.trustedIssuers
    self.issuers = issuers
    self.configuration = configuration
    stamps = Mutex(files.map { FileStamp($0.path) })
    for file in files { try read(file) }
  }

  /// Reads the files that changed since the last look.
  func reload() {
    stamps.withLock { stamps in
      for (index, file) in files.enumerated() {
        let stamp = FileStamp(file.path)
        guard stamp != stamps[index] else { continue }
        stamps[index] = stamp
        do throws(HearthError) { try read(file) } catch {
          configuration.tell(
            .warn, "issuer.refused", "\(error.description); the keys read from it before still count",
            [("file", .text(file.path))])
        }
      }
    }
  }

  private func read(_ file: HearthConfiguration.IssuerFile) throws(HearthError) {
    let bytes = try KeyFile.read(file.path)
    do throws(TokenError) {
      try issuers.trust(TrustedIssuer(issuer: file.issuer, audience: file.audience), keys: bytes)
    } catch { throw .data("\(file.path): \(error.description)") }
  }
}
