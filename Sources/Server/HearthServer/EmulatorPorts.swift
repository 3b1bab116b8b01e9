import OperationsAPI
import Transport

/// The ports besides the main one on which an emulator listens. Every port serves every API.
struct EmulatorPorts: Sendable {
  private typealias Service = HearthConfiguration.EmulatorPort.Service

  /// The ports to open, each once.
  let further: [TransportConfiguration.FurtherPort]
  private let chosen: [HearthConfiguration.EmulatorPort]

  /// Selects the ports of a configuration. A service on the main port, or on the port of another service, shares it.
  /// - Throws: ``HearthError/configuration(_:)`` if the server is not an emulator, or is reachable by other machines.
  init(_ configuration: HearthConfiguration) throws(HearthError) {
    chosen = configuration.emulatorPorts.filter { $0.port == 0 || $0.port != configuration.port }
    var further: [TransportConfiguration.FurtherPort] = []
    for port in chosen {
      if port.port != 0, let index = further.firstIndex(where: { $0.port == port.port }) {
        further[index].isRequired = further[index].isRequired || port.isRequired
      } else {
        further.append(.init(port.port, isRequired: port.isRequired))
      }
    }
    self.further = further
    guard !chosen.isEmpty else { return }
    guard configuration.mode == .emulator else {
      throw .configuration("the further ports of an emulator need --emulator")
    }
    // With an inherited socket, the main port may be on another address than these ports.
    guard configuration.allowsRemoteEmulator || HearthConfiguration.isLoopback(configuration.host) else {
      throw .configuration(
        "emulator mode gives admin access to every client, so all its ports listen on loopback; use --host 127.0.0.1")
    }
  }

  /// Lists the services in the hub, and logs the ports on which the server listens and those that are in use.
  ///
  /// - Parameters:
  ///   - main: the address of the main port.
  ///   - outcomes: the result of opening each port of ``further``.
  func announce(
    main: (host: String, port: Int), _ outcomes: [Result<Int, TransportError>], in hub: EmulatorHub,
    _ configuration: HearthConfiguration
  ) {
    // A free port (0) belongs to one service, and any other port to all services that name it.
    var free = zip(further, outcomes).filter { $0.0.port == 0 }.map(\.1)[...]
    var found: [Service: Int] = [:]
    var failed: [HearthConfiguration.EmulatorPort] = []
    for port in chosen {
      let outcome = port.port == 0 ? free.popFirst() : zip(further, outcomes).first { $0.0.port == port.port }?.1
      switch outcome {
      case .success(let number): found[port.service] = number
      case .failure: failed.append(port)
      case nil: break
      }
    }
    if !found.isEmpty {
      let ports = Service.allCases.compactMap { service in found[service].map { "\($0) (\(service.rawValue))" } }
      configuration.log(.info, "emulator.ports", "further ports: \(ports.joined(separator: ", "))")
    }
    if !failed.isEmpty {
      let ports = failed.map { "\($0.port) (\($0.service.rawValue))" }
      configuration.log(
        .warn, "emulator.ports",
        "in use by another program: \(ports.joined(separator: ", ")); these services are on port \(main.port) only "
          + "(--one-port disables the further ports)")
    }
    let shared = [main.port] + found.filter { $0.key != .hub }.values
    let ownPort = found[.hub].flatMap { shared.contains($0) ? nil : $0 }
    hub.announce(
      [.init("hub", port: found[.hub] ?? main.port), .init("auth", port: found[.auth] ?? main.port)]
        + [.init("firestore", port: main.port), .init("storage", port: found[.storage] ?? main.port)],
      host: main.host, ownPort: ownPort)
  }

  /// Returns the error for a port of a service that is in use, or `nil` if the error is not about such a port.
  func failure(_ error: TransportError) -> HearthError? {
    guard case .addressInUse(let host, let port) = error,
      let chosen = chosen.first(where: { $0.port == port })
    else { return nil }
    let service = chosen.service.rawValue
    return .listening(
      "port \(port) on \(host), which is to serve \(service), is already in use; stop the program that uses it, choose "
        + "another port with --\(service)-port, or "
        + (chosen.isOfFirebaseFile ? "disable the further ports with --one-port" : "leave that option out"))
  }
}
