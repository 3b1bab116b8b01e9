import Accounts
import Synchronization

/// The key files of trusted issuers. They are read at the start, and again when they change.
///
/// If a changed file is not valid, its previous keys stay in use and a warning is logged.
final class IssuerFiles: Sendable {
  private let files: [HearthConfiguration.IssuerFile]
  private let issuers: TrustedIssuers
  private let configuration: HearthConfiguration
  private let stamps: Mutex<[FileStamp]>

  /// Reads the files.
  /// - Throws: ``HearthError/data(_:)`` for the first file that is not valid.
  init(_ configuration: HearthConfiguration, _ issuers: TrustedIssuers) throws(HearthError) {
    files = configuration.trustedIssuers
    self.issuers = issuers
    self.configuration = configuration
    stamps = Mutex(files.map { FileStamp($0.path) })
    for file in files { try read(file) }
  }

  /// Reads the files that changed since the last call.
  func reload() {
    stamps.withLock { stamps in
      for (index, file) in files.enumerated() {
        let stamp = FileStamp(file.path)
        guard stamp != stamps[index] else { continue }
        stamps[index] = stamp
        do throws(HearthError) { try read(file) } catch {
          configuration.log(
            .warn, "issuer.refused", "\(error.description); the keys that were read from it before stay in use",
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
