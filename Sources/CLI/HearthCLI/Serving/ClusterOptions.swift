import HearthServer
import PostgresEngine
import Replication

/// The options of `hearth serve` that make a server a node of a cluster.
enum ClusterOptions {
  static let options: [Command.Option] =
    [
      .value(
        "cluster", "POSTGRES-URL", "serve the project of a cluster, with the other nodes (default: $HEARTH_CLUSTER)"),
      .value(
        "cluster-key", "FILE", "the key of the cluster (default: cluster.key here, or /etc/hearth/cluster.key)"),
      .value(
        "peer-address", "HOST:PORT",
        "where other nodes reach this one; port 0 chooses one (default: --host, port 0)"),
      .value(
        "peer-listen", "HOST:PORT",
        "where this node listens for them, if its address is translated (default: --peer-address)"),
      .value(
        "snapshot-log", "BYTES", "write a snapshot after so much log of the cluster, if due (default: 256M)"),
      .value("kept-log", "TIME", "keep the log of this time for nodes that were away (default: 1h)"),
    ] + SharedFilesOption.options

  /// Makes a configuration that of a node, if the options or the environment name a cluster. With `mayLackKey`, a key that
  /// cannot be read is replaced by a new one, with which no node starts.
  /// - Throws: ``CommandFailure`` if an option is not valid, or the key cannot be read.
  static func apply(
    _ arguments: Arguments, to configuration: inout HearthConfiguration, mayLackKey: Bool = false
  ) throws {
    // The options of a project's own file, and of other verbs, name no cluster.
    guard arguments.accepts("cluster"),
      let url = arguments.value("cluster") ?? DatabaseChoice.environment(ClusterAddress.variable)
    else {
      for option in ["cluster-key", "peer-address", "peer-listen", "snapshot-log", "kept-log", "shared-files"]
      where arguments.accepts(option) && arguments.has(option) {
        throw arguments.refusal(of: [option], "needs --cluster")
      }
      return
    }
    for (option, remedy) in [
      ("import", "load the data through a node that runs: hearth import FILE --server URL"),
      ("backup-to", "in a job of your own, run `hearth cluster copy`, then `hearth backups create` for the copy"),
    ] where arguments.has(option) {
      throw arguments.refusal(of: [option], "cannot be used with --cluster; \(remedy)")
    }
    var address = try Command.address(arguments, "peer-address", example: "10.0.0.1:8090")
    if address == nil { address = HearthConfiguration.Address(host: configuration.host, port: 0) }
    guard let address, !["0.0.0.0", "::", ""].contains(address.host) else {
      throw CommandFailure.usage(
        "other nodes must know where to reach this one: name an address of this machine with --peer-address, such as "
          + "--peer-address 10.0.0.1:8090")
    }
    let key: ClusterKey
    do throws(ClusterKeyFailure) { key = try ClusterKey.read(arguments.value("cluster-key")).key } catch {
      guard mayLackKey else { throw CommandFailure.failed(error.description) }
      key = ClusterKey()
    }
    let postgres = try ClusterAddress.url(url)
    var settings = ClusterSettings(url: postgres, key: key, peerAddress: address)
    settings.peerListen = try Command.address(arguments, "peer-listen", example: "0.0.0.0:8090")
    guard settings.peerListen == nil || arguments.has("peer-address") else {
      throw arguments.refusal(of: ["peer-listen"], "needs --peer-address")
    }
    if let bytes = try arguments.bytes("snapshot-log", in: 1 << 10...1 << 46) {
      settings.snapshots.logBytes = Int64(bytes)
    }
    if let seconds = try arguments.seconds("kept-log") { settings.snapshots.keptTime = Int64(seconds) * 1_000_000 }
    configuration.cluster = settings
    // Without a shared place, the next owner would not have the files of this one.
    configuration.sharedFiles =
      try SharedFilesOption.place(arguments) { try PostgresContent(postgres) }
      ?? PostgresContent(postgres)
  }
}
