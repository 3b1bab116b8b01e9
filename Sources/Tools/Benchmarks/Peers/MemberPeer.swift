import Foundation
import Glibc
import KeyValue
import LMDBEngine
import PostgresEngine
import Replication
import SharedLog

/// One node of a cluster in this process, without documents, HTTP and other nodes. It appends to the log as a server does.
final class MemberPeer {
  private let member: ClusterMember
  private let store: ReplicatedStore

  /// Makes the tables of a cluster in an empty database, and waits until the node owns the cluster.
  /// - Throws: ``BenchmarkError`` if it does not within a minute, or the error of a part.
  init(_ url: String) throws {
    let directory = try Run.makeDirectory("member")
    let identity = ClusterIdentity(project: "bench", keyCheck: try ClusterKey().check(), acceptsLoss: true)
    try ClusterSchema.create(at: url, identity)
    let files = ReplicaFiles.onDisk(existing: []) { store in
      LMDBOptions(path: "\(directory)/\(store.text).mdb", mapBytes: 1 << 30)
    }
    member = ClusterMember(
      number: 1, tables: try PostgresTables(url, secret: identity.secret),
      replica: try Replica(files, secret: identity.secret)
    ) { _ in }
    member.start()
    let watch = Stopwatch()
    while true {
      if let store = try? member.store(.files) {
        self.store = store
        return
      }
      guard watch.seconds < 60 else { throw BenchmarkError("the node does not own the cluster") }
      usleep(20_000)
    }
  }

  /// Commits groups, one after the other. Each stores new rows with about `bytes` bytes: those of creates whose IDs ascend,
  /// one row for each in some tables. Returns the groups in a second.
  /// - Throws: ``StorageError`` if a commit fails.
  func commitGroups(of bytes: Int, seconds: Double) throws -> Double {
    let creates = max(1, bytes / (Self.tables * Self.rowBytes))
    var groups = 0
    let watch = Stopwatch()
    while watch.seconds < seconds {
      try store.write { (transaction) throws(StorageError) in
        for _ in 0..<creates {
          newest += 1
          for table in 0..<Self.tables {
            var failure: StorageError?
            withUnsafeBytes(of: (UInt64(table).bigEndian, UInt64(newest).bigEndian, UInt64(0))) { key in
              withUnsafeBytes(of: (UInt64(groups), UInt64(0))) { value in
                do throws(StorageError) { try transaction.put(key, value) } catch { failure = error }
              }
            }
            if let failure { throw failure }
          }
        }
      }
      groups += 1
    }
    return Double(groups) / watch.seconds
  }

  /// The rows of a create of five fields.
  private static let tables = 10
  /// The bytes of a row in the body of an append: its key of 24 bytes, its value of 16 bytes, and their lengths.
  private static let rowBytes = 44
  private var newest = 0

  /// Stops the node.
  func stop() throws { try member.stop() }
}
