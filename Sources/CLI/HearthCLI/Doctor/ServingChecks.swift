import Glibc
import HearthServer
import Transport

/// Checks the addresses, the certificate and the mail command of the server.
struct ServingChecks {
  let configuration: HearthConfiguration
  /// The server that uses the data directory; `nil` if none does.
  let holder: String?
  /// Microseconds since 1970.
  let now: Int64
  /// The unit of systemd that holds the server's address; `nil` if none does.
  var socket: SocketUnit?

  /// The address on which the server listens.
  private var address: (host: String, port: Int) {
    socket.flatMap { $0.addresses.first }.flatMap(SocketUnit.endpoint) ?? (configuration.host, configuration.port)
  }

  /// A command that also works under the packaged unit, where the sendmail of Postfix and Exim cannot change its group.
  private static let mailCommand = "msmtp -t --host=127.0.0.1 --from=noreply@example.com"
  private static let day: Int64 = 86_400_000_000

  func findings() -> [Finding] {
    // With a socket unit, systemd holds the port.
    var findings = (socket == nil ? [port()] : []) + emulatorPorts() + exposure() + certificates()
    if let address = configuration.metricsAddress { findings += metrics(address) }
    if let address = configuration.consoleAddress { findings += console(address) }
    let accounts = configuration.accounts
    if configuration.mode == .production, accounts.allowsPassword, accounts.mailCommand == nil {
      findings.append(
        .warning(
          "mail", "--mail-command is not set: users who forget their password cannot reset it",
          "Set a command that sends mail, such as --mail-command '\(Self.mailCommand)'."))
    }
    return findings
  }

  private func port() -> Finding {
    let advice = "Choose another with --port, or stop the program that uses it."
    return checks("port", configuration.host, configuration.port, advice)
  }

  /// Checks the further ports of an emulator. A default port that is in use is not a problem, because the server starts
  /// without it.
  private func emulatorPorts() -> [Finding] {
    configuration.emulatorPorts.filter { $0.port != 0 && $0.port != configuration.port }.map { port in
      let option = "--\(port.service.rawValue)-port"
      let advice = "Choose another with \(option), or stop the program that uses it (--one-port disables it)."
      let found = checks("\(port.service.rawValue) port", configuration.host, port.port, advice)
      guard found.level == .problem, !port.isRequired else { return found }
      return .warning(found.topic, "\(found.text.prefix { $0 != ";" }); the server starts without it", advice)
    }
  }

  /// Checks whether an address is free.
  private func checks(_ topic: String, _ host: String, _ port: Int, _ advice: String) -> Finding {
    guard port != 0 else { return .ok(topic, "any free port") }
    do throws(TransportError) {
      try HTTPServer.checkAddress(host: host, port: port)
      return .ok(topic, "\(host):\(port) is free")
    } catch {
      if let holder { return .ok(topic, "\(host):\(port) is taken, and \(holder) is running") }
      return .problem(topic, error.description, advice)
    }
  }

  /// Checks the address for operators, which requires no credentials.
  private func metrics(_ address: HearthConfiguration.Address) -> [Finding] {
    let topic = "metrics"
    let isEverywhere = [address.host, configuration.host].contains { $0 == "0.0.0.0" || $0 == "::" }
    if address.port != 0, address.port == configuration.port, isEverywhere || address.host == configuration.host {
      let text = "\(address.host):\(address.port) is also the address for clients"
      return [.problem(topic, text, "Choose another port with --metrics-address.")]
    }
    let advice = "Choose another with --metrics-address, or stop the program that uses it."
    let found = checks(topic, address.host, address.port, advice)
    guard found.level == .ok, !HearthConfiguration.isLoopback(address.host) else { return [found] }
    return [
      found,
      .warning(
        topic, "every client that reaches \(address.host) can read the metrics, without credentials or TLS",
        "Listen on 127.0.0.1, or on an address that only the monitoring can reach."),
    ]
  }

  /// Checks the address of the console for operators.
  private func console(_ address: HearthConfiguration.Address) -> [Finding] {
    let advice = "Choose another with --console-address, or stop the program that uses it."
    let found = checks("console", address.host, address.port, advice)
    guard found.level == .ok, !HearthConfiguration.isLoopback(address.host), configuration.tls == nil else {
      return [found]
    }
    return [
      found,
      .warning(
        "console", "operators cannot sign in from other machines, because \(address.host) has no TLS",
        "Add --tls-cert and --tls-key, or listen on 127.0.0.1 and use a tunnel or a proxy with TLS."),
    ]
  }

  /// Checks which clients reach the server, and whether their connections are encrypted.
  func exposure() -> [Finding] {
    let host = address.host
    guard !HearthConfiguration.isLoopback(host) else { return [.ok("reach", "this machine only")] }
    if configuration.mode == .emulator {
      return [
        .problem(
          "reach",
          "an emulator makes every client that sends the token 'owner' an administrator, and listens on \(host)",
          "Remove --emulator to serve users, or listen on 127.0.0.1.")
      ]
    }
    guard configuration.tls == nil else { return [.ok("reach", "\(host), with TLS")] }
    return [
      .warning(
        "reach", "passwords and tokens are sent to \(host) without TLS",
        "Add --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with TLS.")
    ]
  }

  /// Checks the certificate and its key, if the server uses TLS.
  func certificates() -> [Finding] { configuration.tls.map { keyPermissions($0) + [certificate($0)] } ?? [] }

  private func keyPermissions(_ tls: HearthConfiguration.TLSFiles) -> [Finding] {
    var status = stat()
    guard stat(tls.key, &status) == 0, status.st_mode & 0o007 != 0 else { return [] }
    return [
      .problem("certificate", "every user of this machine can access the key \(tls.key)", "chmod o= \(tls.key)")
    ]
  }

  private func certificate(_ tls: HearthConfiguration.TLSFiles) -> Finding {
    let topic = "certificate"
    do throws(TransportError) {
      let expiry = try TLSConfiguration(certificateFile: tls.certificate, keyFile: tls.key).expiry()
      let days = (expiry - now) / Self.day
      if expiry <= now {
        let text = "\(tls.certificate) expired \(-days) \(days == -1 ? "day" : "days") ago"
        return .problem(topic, text, "Renew it, then send SIGHUP to the server.")
      }
      guard days >= 14 else {
        let text = "\(tls.certificate) expires in \(CountText.of(Int(days), "day"))"
        return .warning(topic, text, "Renew it, then send SIGHUP to the server.")
      }
      return .ok(topic, "\(tls.certificate) is valid for \(days) days")
    } catch {
      return .problem(topic, error.description, "Give a certificate and its key in PEM format, without a passphrase.")
    }
  }
}
