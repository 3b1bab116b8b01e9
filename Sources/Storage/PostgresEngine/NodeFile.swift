import Basics
package import KeyValue

/// The file of a data directory that says of which cluster it is a replica, and the number of the node:
///
///     hearth cluster node 1
///     cluster 0123456789abcdef0123456789abcdef
///     node 2
///     place BOOT DEVICE INODE
package struct NodeFile: Equatable, Sendable {
  /// The name of the file in the data directory.
  package static let name = "cluster-node"
  private static let header = "hearth cluster node 1"

  /// The identity of the cluster, see ``ClusterIdentity/id``.
  package let cluster: [UInt8]
  package let node: UInt32
  /// The place of the directory when the file was written.
  package let place: NodePlace

  init(cluster: [UInt8], node: UInt32, place: NodePlace) {
    self.cluster = cluster
    self.node = node
    self.place = place
  }

  /// Reads the file of a directory, or returns `nil` if it has none.
  /// - Throws: `StorageError.corruption` if the file is damaged; another `StorageError` if it cannot be read.
  package init?(directory: String) throws(StorageError) {
    let path = "\(directory)/\(Self.name)"
    guard let text = try DurableFile.text(path, bytesMax: 1024) else { return nil }
    let lines = text.split(separator: "\n")
    guard lines.count == 4, lines[0] == Self.header, lines[1].hasPrefix("cluster "), lines[2].hasPrefix("node "),
      lines[3].hasPrefix("place "), let cluster = Hexadecimal.bytes(lines[1].dropFirst(8)),
      let node = UInt32(lines[2].dropFirst(5)), let place = NodePlace(lines[3].dropFirst(6))
    else { throw .corruption(path: path, detail: "it does not have the form that `hearth serve --cluster` writes") }
    self.init(cluster: cluster, node: node, place: place)
  }

  /// Writes the file, and waits until it is on disk.
  /// - Throws: `StorageError.system`.
  func write(to directory: String) throws(StorageError) {
    let path = "\(directory)/\(Self.name)"
    let text = "\(Self.header)\ncluster \(Hexadecimal.text(cluster))\nnode \(node)\nplace \(place.text)\n"
    let code = DurableFile.replace(path, with: text)
    guard code == 0 else { throw .system(operation: "write", path: path, code: code) }
  }
}
