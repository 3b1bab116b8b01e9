import HearthServer

/// The options for the ports on which apps and tools expect the services of Firebase's Emulator Suite.
enum EmulatorPortOptions {
  private typealias Service = HearthConfiguration.EmulatorPort.Service

  /// Returns the ports to open besides the main one.
  ///
  /// The server must be able to listen on a port that an option or a file names. The default ports are optional. They
  /// and the ports of `firebase.json` apply only if the main port is a fixed one: several servers that choose free
  /// ports, such as those of tests, run at the same time.
  ///
  /// - Parameter hasDefaults: whether to use the default ports of services whose port is not named.
  /// - Throws: ``CommandFailure`` if a value is invalid, or the options contradict each other.
  static func ports(
    _ arguments: Arguments, _ configuration: HearthConfiguration, hasDefaults: Bool
  ) throws -> [HearthConfiguration.EmulatorPort] {
    let isFixed = configuration.port != 0 && configuration.listeningSocket == nil
    var ports: [HearthConfiguration.EmulatorPort] = []
    for service in Service.allCases {
      let name = "\(service.rawValue)-port"
      let isOfFirebase = arguments.origins[name] == FirebaseFile.name
      if let port = try arguments.integer(name, in: 0...65535), isFixed || !isOfFirebase {
        guard configuration.mode == .emulator else { throw arguments.refusal(of: [name], "needs --emulator") }
        try arguments.exclude("one-port", name)
        var chosen = HearthConfiguration.EmulatorPort(service, port: port)
        chosen.isOfFirebaseFile = isOfFirebase
        ports.append(chosen)
      } else if hasDefaults, isFixed, configuration.mode == .emulator, !arguments.has("one-port") {
        ports.append(.init(service, port: service.defaultPort, isRequired: false))
      }
    }
    return ports
  }
}
