import DocumentModel
import Gateway

/// A project of a server that serves several.
public struct ProjectSource: Sendable {
  /// The project ID.
  public var id: String
  /// The host names that only this project has, in any case and without ports. A request to one of them is for this
  /// project.
  public var hosts: [String] = []
  /// The API keys of its apps. They identify the project, and are not secret.
  public var apiKeys: [String]
  /// The configuration, of which the server uses only what belongs to a project, or the reason why it is not valid.
  public var configuration: Result<HearthConfiguration, HearthError>
  /// A text that differs if the configuration does, without hosts and keys.
  public var fingerprint: String

  /// Creates a project. Without API keys, the project ID is its key.
  public init(
    id: String, hosts: [String] = [], apiKeys: [String]? = nil,
    configuration: Result<HearthConfiguration, HearthError>, fingerprint: String
  ) {
    self.id = id
    self.hosts = hosts
    self.apiKeys = apiKeys ?? [id]
    self.configuration = configuration
    self.fingerprint = fingerprint
  }

  /// Checks the configuration and the files that it names, without serving them.
  /// - Throws: ``HearthError`` for the first mistake.
  public func check() throws(HearthError) {
    let configuration = try configuration.get()
    guard DatabaseID(project: id) != nil else { throw .configuration("'\(id)' is not a valid project ID") }
    for host in hosts {
      guard Self.isHostName(host) else {
        throw .configuration("hosts: '\(host)' must be a host name without a scheme and a port")
      }
    }
    guard !apiKeys.contains("") else { throw .configuration("api-keys: a key must not be empty") }
    try ProjectStack.check(configuration)
  }

  /// Whether a text is a host name, or an IPv6 address in brackets.
  private static func isHostName(_ text: String) -> Bool {
    let isAddress = text.hasPrefix("[") && text.hasSuffix("]")
    return !text.isEmpty && !text.hasSuffix(".")
      && text.utf8.allSatisfy { byte in
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._".utf8.contains(byte)
          || isAddress && "[]:".utf8.contains(byte)
      }
  }

  /// Returns texts about the host names and API keys that several of these projects have. Each name belongs to only one
  /// of them.
  public static func conflicts(_ sources: [ProjectSource]) -> [String] {
    ProjectTable.problems(of: sources.map { ProjectNames(id: $0.id, hosts: $0.hosts, apiKeys: $0.apiKeys) })
  }
}
