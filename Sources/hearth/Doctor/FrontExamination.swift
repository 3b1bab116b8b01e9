import Glibc
import HearthServer
import Transport

/// What `hearth doctor` finds out about the port: who could reach it, by what certificate, and who may come in.
struct FrontExamination {
  let configuration: HearthConfiguration
  /// The server that uses the data directory; `nil` for none.
  let holder: String?
  /// Microseconds since 1970.
  let now: Int64

  private static let day: Int64 = 86_400_000_000

  func findings() -> [Finding] {
    var findings = [port()]
    findings += exposure()
    if let tls = configuration.tls { findings.append(certificate(tls)) }
    for issuer in configuration.trustedIssuers where access(issuer.path, R_OK) != 0 {
      let text = "\(issuer.path), with the keys of \(issuer.issuer): \(DirectoryExamination.reason())"
      findings.append(.problem("issuer", text, "Name a file that can be read."))
    }
    let accounts = configuration.accounts
    if configuration.mode == .production, accounts.allowsPassword, accounts.mailCommand == nil {
      findings.append(
        .warning(
          "mail", "there is no --mail-command: nobody who forgot a password can set a new one",
          "Name one that sends mail, such as 'sendmail -t'."))
    }
    return findings
  }

  private func port() -> Finding {
    let (host, port) = (configuration.host, configuration.port)
    guard port != 0 else { return .ok("port", "any that is free") }
    do throws(TransportError) {
      try HTTPServer.checkAddress(host: host, port: port)
      return .ok("port", "\(host):\(port) is free")
    } catch {
      if let holder { return .ok("port", "\(host):\(port) is taken, and \(holder) runs") }
      return .problem("port", error.description, "Choose another with --port, or end what uses it.")
    }
  }

  private func exposure() -> [Finding] {
    let host = configuration.host
    if host == "localhost" || host.hasPrefix("127.") || host == "::1" {
      return [.ok("reach", "this machine only")]
    }
    if configuration.mode == .emulator {
      return [
        .problem(
          "reach", "an emulator takes whoever says 'owner' for its owner, and listens on \(host)",
          "Serve people without --emulator; or listen on 127.0.0.1.")
      ]
    }
    guard configuration.tls == nil else { return [.ok("reach", "\(host), with TLS")] }
    return [
      .warning(
        "reach", "passwords and tokens come to \(host) without TLS",
        "Add --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS.")
    ]
  }

  private func certificate(_ tls: HearthConfiguration.TLSFiles) -> Finding {
    let topic = "certificate"
    var status = stat()
    if stat(tls.key, &status) == 0, status.st_mode & 0o007 != 0 {
      return .problem(topic, "everybody on this machine may read the key \(tls.key)", "chmod o= \(tls.key)")
    }
    do throws(TransportError) {
      let expiry = try TLSConfiguration(certificateFile: tls.certificate, keyFile: tls.key).expiry()
      let days = (expiry - now) / Self.day
      if expiry <= now {
        return .problem(topic, "\(tls.certificate) ran out \(-days) days ago", "Renew it, then send SIGHUP.")
      }
      guard days < 14 else { return .ok(topic, "\(tls.certificate) holds for \(days) days") }
      return .warning(topic, "\(tls.certificate) runs out in \(days) days", "Renew it, then send SIGHUP.")
    } catch {
      return .problem(topic, error.description, "Give a certificate and its key in PEM form, without a passphrase.")
    }
  }
}
