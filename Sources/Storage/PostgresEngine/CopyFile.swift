import Basics
import Glibc
package import KeyValue

/// The file of a data directory that says of which cluster it is a copy, and whether the copy is whole:
///
///     hearth cluster copy 1
///     cluster 0123456789abcdef0123456789abcdef
///     log 0123456789abcdef
///     whole
///
/// The last line is `unfinished` while `hearth cluster copy` runs, and after it was interrupted.
package struct CopyFile: Equatable, Sendable {
  /// The name of the file in the data directory.
  package static let name = "cluster-copy"
  private static let header = "hearth cluster copy 1"

  /// The identity of the cluster, see ``ClusterIdentity/id``.
  package let cluster: [UInt8]
  /// The secret of its log, which the marks of all data files have until a server alone writes to them.
  package let secret: UInt64
  /// Whether the directory has everything.
  package var isWhole: Bool

  /// Describes a copy that is not whole yet.
  package init(of identity: ClusterIdentity) { (cluster, secret, isWhole) = (identity.id, identity.secret, false) }

  /// Reads the file of a directory, or returns `nil` if the directory is not a copy.
  /// - Throws: `StorageError.corruption` if the file is damaged; another `StorageError` if it cannot be read.
  package init?(directory: String) throws(StorageError) {
    let path = "\(directory)/\(Self.name)"
    guard let text = try DurableFile.text(path, bytesMax: 1024) else { return nil }
    let lines = text.split(separator: "\n")
    guard lines.count == 4, lines[0] == Self.header, lines[1].hasPrefix("cluster "), lines[2].hasPrefix("log "),
      let cluster = Hexadecimal.bytes(lines[1].dropFirst(8)), let secret = UInt64(lines[2].dropFirst(4), radix: 16),
      lines[3] == "whole" || lines[3] == "unfinished"
    else {
      throw .corruption(
        path: path,
        detail: "it does not have the form that `hearth cluster copy` writes; to use the data as it is, remove the file"
      )
    }
    (self.cluster, self.secret, isWhole) = (cluster, secret, lines[3] == "whole")
  }

  /// Writes the file, and waits until it is on disk.
  /// - Throws: `StorageError.system`.
  package func write(to directory: String) throws(StorageError) {
    let path = "\(directory)/\(Self.name)"
    let state = isWhole ? "whole" : "unfinished"
    let text =
      "\(Self.header)\ncluster \(Hexadecimal.text(cluster))\nlog \(String(secret, radix: 16))\n\(state)\n"
    let code = DurableFile.replace(path, with: text)
    guard code == 0 else { throw .system(operation: "write", path: path, code: code) }
  }
}
