/// The reason why a server or a loop cannot be set up. Variable parts are in the associated values.
package enum TransportError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A number or limit in the configuration is not positive or above the parser's maximum.
  case invalidConfiguration(reason: String)
  /// The host name has no address on this machine.
  case hostNotFound(host: String, reason: String)
  /// Another program listens on the address already.
  case addressInUse(host: String, port: Int)
  /// The system refused to listen on the address: no permission, or an address that is not this machine's.
  case cannotListen(host: String, port: Int, reason: String)
  /// An event loop, a thread or a signal watcher cannot be created: the process is out of descriptors, threads or
  /// memory.
  case resourceExhausted(what: String, reason: String)
  /// A certificate or key file is missing, is not in PEM form, or the two do not belong together.
  case badCertificate(file: String, reason: String)
  /// `start` was called twice, or after `stop`.
  case alreadyStarted

  package var description: String {
    switch self {
    case .invalidConfiguration(let reason):
      "the server's configuration is not valid: \(reason)"
    case .hostNotFound(let host, let reason):
      "cannot find the address of '\(host)': \(reason); use an address such as 127.0.0.1"
    case .addressInUse(let host, let port):
      "port \(port) on \(host) is already in use; stop the program that uses it, or choose another port "
        + "(0 picks a free one)"
    case .cannotListen(let host, let port, let reason):
      "cannot listen on \(host) port \(port): \(reason)"
    case .resourceExhausted(let what, let reason):
      "cannot create \(what): \(reason)"
    case .badCertificate(let file, let reason):
      "cannot use '\(file)' for TLS: \(reason)"
    case .alreadyStarted:
      "the server was already started, and can run only once"
    }
  }
}
