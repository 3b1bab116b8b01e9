import Glibc
package import KeyValue
package import SharedLog

/// The number of this node in its cluster, and how it was found.
package struct NodeRegistration: Equatable, Sendable {
  /// The greatest number of a node.
  package static let nodeMax: UInt32 = 9999

  package let node: UInt32
  /// Whether the directory had this number before. If not, it must be empty, or its content must be that of the
  /// cluster.
  package let isKnown: Bool

  package init(node: UInt32, isKnown: Bool) {
    self.node = node
    self.isKnown = isKnown
  }

  /// Registers this node, and returns its number: the one in the directory's file ``NodeFile``, or the lowest that no node
  /// has had.
  ///
  /// The caller holds the lock of the directory. A directory keeps its number if the same file locks it as before.
  /// After a boot of the machine, an image of the machine could be a copy with the same file. So the session of the
  /// number must be silent for as long as a takeover waits. The row of the table then has the new place, and a second
  /// copy is refused.
  ///
  /// - Parameters:
  ///   - directory: the path of the data directory.
  ///   - lockFile: the path of the file that locks it.
  ///   - address: where other nodes reach this one.
  ///   - software: the version of this program.
  /// - Throws: ``NodeRegistrationFailure``.
  package static func register(
    directory: String, lockFile: String, address: String, software: String, in catalog: ClusterCatalog,
    timing: ClusterTiming = ClusterTiming()
  ) throws(NodeRegistrationFailure) -> NodeRegistration {
    do {
      let cluster = try catalog.identity().id
      let place = try NodePlace(lockFile: lockFile)
      if let file = try NodeFile(directory: directory) {
        guard file.cluster == cluster else { throw NodeRegistrationFailure.otherCluster(directory) }
        if try keeps(file, place, timing, catalog),
          try update(file, place, address, software, catalog)
        {
          if file.place != place {
            try NodeFile(cluster: cluster, node: file.node, place: place).write(to: directory)
          }
          return NodeRegistration(node: file.node, isKnown: true)
        }
      }
      while true {
        let taken = try catalog.usedNumbers()
        guard let node = (1...nodeMax).first(where: { !taken.contains($0) }) else {
          throw NodeRegistrationFailure.full
        }
        // The file comes first: after a crash between the two, the node finds its row, or registers it.
        try NodeFile(cluster: cluster, node: node, place: place).write(to: directory)
        if try catalog.insert(node, place: place.text, address: address, software: software) {
          return NodeRegistration(node: node, isKnown: false)
        }
      }
    } catch let failure as NodeRegistrationFailure {
      throw failure
    } catch let failure as PostgresFailure {
      throw .postgres(failure)
    } catch let failure as StorageError {
      throw .storage(failure)
    } catch {
      throw .postgres(.unexpectedAnswer)
    }
  }

  /// Registers a node again that runs, after an operator removed it. Returns `false` if it is registered.
  /// - Throws: ``PostgresFailure``.
  package static func restore(
    _ node: UInt32, at place: NodePlace, address: String, software: String, in catalog: ClusterCatalog
  ) throws(PostgresFailure) -> Bool {
    try catalog.insert(node, place: place.text, address: address, software: software)
  }

  /// Returns whether the file was written in this directory and not in an original of it, as far as this machine and
  /// the sessions can tell.
  private static func keeps(
    _ file: NodeFile, _ place: NodePlace, _ timing: ClusterTiming, _ catalog: ClusterCatalog
  ) throws(PostgresFailure) -> Bool {
    guard place.isSameFile(as: file.place) else { return false }
    // In the same boot, the lock proves that no other process uses the number.
    if place.boot == file.place.boot { return true }
    guard let first = try catalog.state().member(file.node)?.session, first.isLive else { return true }
    let end = now() + timing.silence
    repeat {
      usleep(useconds_t(timing.poll))
      guard try catalog.state().member(file.node)?.session == first else { return false }
    } while now() < end
    return true
  }

  /// Updates the row of the number, or inserts it if a crash came before. Returns `false` if it belongs to another
  /// directory.
  private static func update(
    _ file: NodeFile, _ place: NodePlace, _ address: String, _ software: String, _ catalog: ClusterCatalog
  ) throws(PostgresFailure) -> Bool {
    guard try catalog.place(of: file.node) != nil else {
      return try catalog.insert(file.node, place: place.text, address: address, software: software)
    }
    if try catalog.update(
      file.node, from: file.place.text, to: place.text, address: address, software: software)
    {
      return true
    }
    // An operator may have removed the row since.
    guard try catalog.place(of: file.node) == nil else { return false }
    return try catalog.insert(file.node, place: place.text, address: address, software: software)
  }

  /// The time of a clock that never steps, in microseconds.
  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}

/// The reason why a node could not be registered.
package enum NodeRegistrationFailure: Error, Equatable, Sendable {
  case postgres(PostgresFailure)
  case storage(StorageError)
  /// The data directory is a replica of another cluster.
  case otherCluster(String)
  /// All numbers are in use.
  case full
}

extension NodeRegistrationFailure: CustomStringConvertible {
  /// A text for operators: the failure and the remedy.
  package var description: String {
    switch self {
    case .postgres(let failure): failure.description
    case .storage(let failure): failure.description
    case .otherCluster(let directory):
      "\(directory) is a replica of another cluster; name an empty directory with --data"
    case .full: "all \(NodeRegistration.nodeMax) numbers of nodes were used; make a new cluster from a copy of this one"
    }
  }
}
