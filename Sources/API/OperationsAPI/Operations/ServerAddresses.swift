import Synchronization

/// The URLs of a server, for the files that programs get.
package final class ServerAddresses: Sendable {
  /// The URL at which clients on other machines reach the server, as the operator configured it.
  package let publicURL: String?
  private let listening: Listening

  /// The URL on which the server listens. All projects of a server share it.
  private final class Listening: Sendable {
    let url = Mutex<String?>(nil)
  }

  /// Creates the addresses of a server that does not listen yet.
  package init(publicURL: String?) {
    self.publicURL = publicURL
    listening = Listening()
  }

  private init(publicURL: String?, _ listening: Listening) {
    self.publicURL = publicURL
    self.listening = listening
  }

  /// Returns the addresses of a project on this server, which may have a public URL of its own.
  package func addresses(publicURL: String?) -> ServerAddresses { ServerAddresses(publicURL: publicURL, listening) }

  /// The URL on which the server listens, or `nil` before it does.
  package var listeningURL: String? {
    get { listening.url.withLock { $0 } }
    set { listening.url.withLock { $0 = newValue } }
  }

  /// The URL for a program if the request names none: the public one, or the listening one if it is plain HTTP, which
  /// only programs on this machine should use.
  var keyURL: String? {
    publicURL ?? listeningURL.flatMap { $0.hasPrefix("http://127.") || $0.hasPrefix("http://[::1]") ? $0 : nil }
  }
}
