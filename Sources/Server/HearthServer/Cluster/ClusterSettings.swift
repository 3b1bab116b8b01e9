package import PostgresEngine
package import Replication
import Transport

/// How a server takes part in a cluster; see `docs/internals/cluster.md`.
package struct ClusterSettings: Sendable {
  /// The URL of the PostgreSQL database with the tables of the cluster.
  package var url: String
  package var key: ClusterKey
  /// The address at which other nodes reach this one. Port 0 chooses a free port.
  package var peerAddress: HearthConfiguration.Address
  /// The address at which this node accepts connections of the others, if it is another one than they use, because of a
  /// translation of addresses in between. Port 0 chooses a free port, which ``peerAddress`` has too if its port is 0.
  package var peerListen: HearthConfiguration.Address?
  /// When this node writes snapshots, and how much log it keeps.
  package var snapshots = SnapshotSettings()

  package init(url: String, key: ClusterKey, peerAddress: HearthConfiguration.Address) {
    self.url = url
    self.key = key
    self.peerAddress = peerAddress
  }

  /// Checks that a configuration with a cluster has nothing that a cluster does not have.
  /// - Throws: ``HearthError/configuration(_:)`` if it has.
  package static func check(_ configuration: HearthConfiguration) throws(HearthError) {
    guard configuration.cluster != nil else { return }
    guard configuration.storage != .inMemory else {
      throw .configuration("a node of a cluster keeps its replica in a data directory; name one with --data")
    }
    guard configuration.loadProjects == nil else {
      throw .configuration("a cluster serves one project; --projects and --cluster exclude each other")
    }
    guard configuration.rules.isEmpty, configuration.storageRules == nil, configuration.indexes.isEmpty else {
      throw .configuration(
        "the nodes of a cluster have the rules and indexes that are deployed; instead of --rules, --storage-rules and "
          + "--indexes, run: hearth cluster deploy")
    }
  }
}

extension NodeAddress {
  /// An address from the options, with another port if its port is 0.
  init(_ address: HearthConfiguration.Address, otherwise port: Int) {
    self.init(host: address.host, port: address.port == 0 ? port : address.port)
  }

  /// The address by which this machine itself reaches a server that listens at this one.
  var reachableHere: NodeAddress {
    let host = ["0.0.0.0": "127.0.0.1", "::": "::1"][host] ?? host
    return NodeAddress(host: host, port: port)
  }

  /// Reads the form of ``description``. Returns `nil` for another form.
  package init?(text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
      (1...65535).contains(port)
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard !host.isEmpty else { return nil }
    self.init(host: String(host), port: port)
  }
}
