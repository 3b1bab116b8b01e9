import Glibc
import HearthServer
import Transport

/// What `hearth doctor` finds out about the port: who could reach it, by what certificate, and who may come in.
struct ServingChecks {
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
    if let address = configuration.metricsAddress { findings += metrics(address) }
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
    checks("port", configuration.host, configuration.port, "Choose another with --port, or end what uses it.")
  }

  /// Whether an address is free.
  private func checks(_ topic: String, _ host: String, _ port: Int, _ advice: String) -> Finding {
    guard port != 0 else { return .ok(topic, "any that is free") }
    do throws(TransportError) {
      try HTTPServer.checkAddress(host: host, port: port)
      return .ok(topic, "\(host):\(port) is free")
    } catch {
      if let holder { return .ok(topic, "\(host):\(port) is taken, and \(holder) runs") }
      return .problem(topic, error.description, advice)
    }
  }

  /// The address of operators, where nobody is asked who they are.
  private func metrics(_ address: HearthConfiguration.Address) -> [Finding] {
    let topic = "metrics"
    let isEverywhere = [address.host, configuration.host].contains { $0 == "0.0.0.0" || $0 == "::" }
    if address.port != 0, address.port == configuration.port, isEverywhere || address.host == configuration.host {
      let text = "\(address.host):\(address.port) is where clients are answered"
      return [.problem(topic, text, "Choose another port with --metrics-address.")]
    }
    let advice = "Choose another with --metrics-address, or end what uses it."
    let found = checks(topic, address.host, address.port, advice)
    guard found.level == .ok, !HearthConfiguration.isLoopback(address.host) else { return [found] }
    return [
      found,
      .warning(
        topic, "who reaches \(address.host) reads metrics, without credentials and without TLS",
        "Listen on 127.0.0.1, or on an address that only monitoring reaches."),
    ]
  }

  private func exposure() -> [Finding] {
    let host = configuration.host
    guard !HearthConfiguration.isLoopback(host) else { return [.ok("reach", "this machine only")] }
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
