import Basics
import Glibc
package import KeyValue

/// The file of a data directory that says of which cluster it is a copy:
///
///     hearth cluster copy 1
///     cluster 0123456789abcdef0123456789abcdef
package enum CopyFile {
  /// The name of the file in the data directory.
  package static let name = "cluster-copy"
  private static let header = "hearth cluster copy 1"

  /// Returns the identity of the cluster, see ``ClusterIdentity/id``, or `nil` if the directory is not a copy.
  /// - Throws: `StorageError.corruption` if the file is damaged; another `StorageError` if it cannot be read.
  package static func cluster(ofDirectory directory: String) throws(StorageError) -> [UInt8]? {
    let path = "\(directory)/\(name)"
    switch DurableFile.text(path, bytesMax: 1024) {
    case .failure(let failure): throw .system(operation: "read", path: path, code: failure.code)
    case .success(let text):
      guard let text else { return nil }
      let lines = text.split(separator: "\n")
      guard lines.count == 2, lines[0] == header, lines[1].hasPrefix("cluster "),
        let cluster = Hexadecimal.bytes(lines[1].dropFirst(8))
      else { throw .corruption(path: path, detail: "it does not have the form that `hearth cluster copy` writes") }
      return cluster
    }
  }

  /// Writes the file, and waits until it is on disk.
  /// - Throws: `StorageError.system`.
  package static func write(cluster: [UInt8], to directory: String) throws(StorageError) {
    let path = "\(directory)/\(name)"
    let code = DurableFile.replace(path, with: "\(header)\ncluster \(Hexadecimal.text(cluster))\n")
    guard code == 0 else { throw .system(operation: "write", path: path, code: code) }
  }
}
