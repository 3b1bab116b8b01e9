import PostgresEngine

extension Command {
  /// Adds to the tables of a cluster what this version needs.
  static let clusterUpgrade = Command(
    name: "cluster upgrade", summary: "Adds to the tables of a cluster what a new version needs.",
    operands: "[POSTGRES-URL]", operandCount: 0...1, options: [],
    details: """
      A new version of Hearth may need more tables. Its nodes refuse the cluster then and name this verb. Stop the nodes of
      the former version first: they do not start again afterwards. The verb does nothing if the tables are those of this
      version.

      \(ClusterAddress.details)
      """,
    examples: [("hearth cluster upgrade postgres://hearth@pg1,pg2/hearth", "after the nodes were stopped")],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.first)
      try ClusterSchema.upgrade(at: url)
      Terminal.output.write("the tables of the cluster have format \(ClusterSchema.format)\n")
      return 0
    })
}
