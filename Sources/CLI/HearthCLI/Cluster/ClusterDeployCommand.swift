import PostgresEngine

extension Command {
  /// Stores rules and indexes in a cluster.
  static let clusterDeploy = Command(
    name: "cluster deploy", summary: "Gives rules and indexes to all nodes of a cluster.", operands: "[POSTGRES-URL]",
    operandCount: 0...1, options: ClusterParts.options,
    details: """
      The verb checks the files as `hearth rules check` does, and deploys nothing if one has an error. Parts that are not
      given remain as they are. It prints the version of the new configuration.

      \(ClusterAddress.details)
      """,
    examples: [
      ("hearth cluster deploy postgres://hearth@pg1,pg2/hearth --rules firestore.rules", "keeps the indexes"),
      ("hearth cluster deploy --indexes firestore.indexes.json", "with the URL in HEARTH_CLUSTER"),
    ],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.first)
      let parts = try ClusterParts.read(arguments)
      guard !parts.isEmpty else {
        throw CommandFailure.usage("nothing to deploy; add --rules, --storage-rules or --indexes")
      }
      _ = try ClusterSchema.check(at: url)
      let catalog = try ClusterCatalog(url)
      // If somebody else deploys at the same time, theirs comes first, and the parts of both are in force.
      for _ in 0..<10 {
        let (last, found) = try catalog.configuration(newerThan: 0) ?? (0, ClusterConfiguration())
        var configuration = found
        for part in parts { configuration.set(part) }
        if configuration == found {
          Terminal.output.write("version \(last) has the same rules and indexes already\n")
          return 0
        }
        guard let version = try catalog.deploy(configuration, after: last) else { continue }
        Terminal.output.write("deployed version \(version)\n")
        for line in ClusterParts.lines(configuration) { Terminal.output.write("  \(line)\n") }
        return 0
      }
      throw CommandFailure(ExitCode.busy, "others deployed at the same time again and again; run the command again")
    })
}
