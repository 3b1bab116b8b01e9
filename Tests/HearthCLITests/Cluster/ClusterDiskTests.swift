import Foundation
import Testing
import TestSupport

/// A node of a cluster on a disk of a few megabytes.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .needs(.mounting), .serialized)
struct ClusterDiskTests {
  @Test func anOwnerWithAFullDiskGivesTheClusterAway() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 0)
      let data = cluster.directory.file("node1")
      try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
      let disk = try SmallDisk(at: data, size: "12m")
      defer { disk.unmount() }
      defer { for node in cluster.nodes { node.process.stop() } }
      let owner = try cluster.add()
      #expect(try cluster.owner() == 0)
      _ = try cluster.add()
      try Self.create("before", at: cluster.ports)
      try disk.fill()
      // These commits are in the log. The owner notices its disk when it moves them to its data file, some seconds later. Its
      // file can have free pages, so that takes more than one commit on a slow machine.
      var commits = 0
      let isGiven = try OtherProcess.eventually {
        try Self.create("full\(commits)", at: cluster.ports)
        commits += 1
        return try cluster.status()["owner"]?.integerValue == 2
      }
      try #require(isGiven, "\(owner.process.output)")
      #expect(owner.process.output.contains("node 1 cannot write its data files"))
      try Self.create("after", at: cluster.ports)
      let found = try ServedCluster.send(cluster.ports[1], "GET", "\(ServedCluster.documents)/c?pageSize=1000")
      #expect(try JSONNode(parsing: found.body)["documents"]?.elements.count == 2 * (2 + commits), "\(found.text)")
    }
  }

  /// Creates a document at each node.
  private static func create(_ name: String, at ports: [UInt16]) throws {
    for (node, port) in ports.enumerated() {
      let target = "\(ServedCluster.documents)/c?documentId=\(name)\(node)"
      let made = try ServedCluster.send(port, "POST", target, "{}")
      #expect(made.status == 200, "\(name) at node \(node + 1): \(made.text)")
    }
  }
}
