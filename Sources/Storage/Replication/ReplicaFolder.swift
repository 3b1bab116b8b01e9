import Glibc
package import KeyValue
import LMDBEngine

/// The places of a replica's data files in a directory, and of those that a node loads to replace them.
///
///     DIR/joining/0, 1, …           data files that are being loaded, one for each store
///     DIR/joining/plan              exists when they are whole: a line for each store, and the place of the former files
///     DIR/replica.diverged-TIME/…   the data files of a replica with another history, in the places of a data directory
///
/// After a crash, the next start finishes the replacement if the plan exists, and removes the folder otherwise. So a node
/// never has the files of some stores only.
package struct ReplicaFolder: Sendable {
  /// The directory.
  package let path: String
  /// The size to which a data file may grow, in bytes.
  let mapBytes: Int
  private let listing: @Sendable () throws(StorageError) -> [StoreName]
  private let place: @Sendable (StoreName, _ directory: String) -> String
  private let prepare: @Sendable (_ directory: String) throws(StorageError) -> Void

  /// Describes a directory.
  /// - Parameters:
  ///   - listing: returns the stores whose data files exist.
  ///   - place: the path of the data file of a store in a directory.
  ///   - prepare: makes a new directory for data files that are set aside one that commands can read.
  package init(
    path: String, mapBytes: Int, listing: @escaping @Sendable () throws(StorageError) -> [StoreName],
    place: @escaping @Sendable (StoreName, _ directory: String) -> String,
    prepare: @escaping @Sendable (_ directory: String) throws(StorageError) -> Void = { _ in }
  ) {
    (self.path, self.mapBytes, self.listing, self.place, self.prepare) = (path, mapBytes, listing, place, prepare)
  }

  /// The stores whose data files exist.
  /// - Throws: ``StorageError`` if the directory cannot be read.
  package func existing() throws(StorageError) -> [StoreName] { try listing() }

  // MARK: Loading

  private var joining: String { "\(path)/joining" }
  private var plan: String { "\(joining)/plan" }
  private static let planHeader = "hearth join 1"
  private static let planBytesMax = 1 << 20

  /// Returns the path for a data file that is being loaded.
  func loadingPath(_ number: Int) -> String { "\(joining)/\(number)" }

  /// Makes an empty folder for data files that are to be loaded.
  /// - Throws: ``StorageError``.
  func beginLoading() throws(StorageError) {
    try removeLoaded()
    try Self.makeFolder(joining)
  }

  /// Replaces the data files of the replica with those that were loaded, which are whole and synced: store number n is in
  /// ``loadingPath(_:)``. The former files go to a folder of the name `aside`, or are removed. No file of a store may be in
  /// use for writing.
  /// - Throws: ``StorageError``. The next ``finishReplacement()`` continues.
  func replace(with stores: [StoreName], aside: String?) throws(StorageError) {
    let text = ([Self.planHeader, "aside \(aside ?? "")"] + stores.map { "store \($0.text)" }).joined(separator: "\n")
    try Self.write(text + "\n", to: "\(plan).new")
    try Self.rename("\(plan).new", plan)
    try Descriptor.syncDirectory(of: plan)
    try finishReplacement()
  }

  /// Finishes a replacement that a crash interrupted, or removes what was not loaded as a whole. Call it before the replica
  /// is opened.
  /// - Throws: ``StorageError``.
  package func finishReplacement() throws(StorageError) {
    guard access(plan, F_OK) == 0 else { return try removeLoaded() }
    let (stores, aside) = try readPlan()
    // An old file is at the place of a new one until the new one has left the folder.
    for former in try listing() where !stores.contains(former) { try discard(former, aside) }
    for (number, store) in stores.enumerated() where access(loadingPath(number), F_OK) == 0 {
      try discard(store, aside)
      let file = place(store, path)
      try makeFolders(of: file, in: path)
      try Self.rename(loadingPath(number), file)
      try Descriptor.syncDirectory(of: file)
    }
    try removeLoaded()
  }

  private func readPlan() throws(StorageError) -> (stores: [StoreName], aside: String?) {
    let file = try Descriptor(path: plan, flags: O_RDONLY)
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.planBytesMax, alignment: 1)
    defer { bytes.deallocate() }
    let count = try file.read(into: bytes, at: 0)
    let lines = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
    let stores = lines.dropFirst(2).map { $0.hasPrefix("store ") ? StoreName(String($0.dropFirst(6))) : nil }
    guard lines.count >= 2, lines[0] == Self.planHeader, lines[1].hasPrefix("aside "), !stores.contains(nil) else {
      throw .corruption(path: plan, detail: "it is not readable; remove the folder that contains it, and start again")
    }
    let aside = String(lines[1].dropFirst(6))
    guard !aside.contains("/") else { throw .corruption(path: plan, detail: "it names another folder") }
    return (stores.compactMap { $0 }, aside.isEmpty ? nil : aside)
  }

  /// Removes the data file of a store if it exists, or moves it to the folder for former files.
  private func discard(_ store: StoreName, _ aside: String?) throws(StorageError) {
    let file = place(store, path)
    guard access(file, F_OK) == 0 else { return }
    if let aside {
      let directory = "\(path)/\(aside)"
      if mkdir(directory, 0o700) == 0 {
        try prepare(directory)
      } else if errno != EEXIST {
        throw .systemCall("mkdir", path: directory)
      }
      let kept = place(store, directory)
      try makeFolders(of: kept, in: directory)
      try Self.rename(file, kept)
      try Descriptor.syncDirectory(of: kept)
    } else {
      guard unlink(file) == 0 || errno == ENOENT else { throw .systemCall("unlink", path: file) }
    }
    unlink("\(file)-lock")
    try Descriptor.syncDirectory(of: file)
  }

  private func removeLoaded() throws(StorageError) {
    guard let stream = opendir(joining) else {
      if errno == ENOENT { return }
      throw .systemCall("opendir", path: joining)
    }
    var names: [String] = []
    while let entry = readdir(stream) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    closedir(stream)
    // The plan is the last: without it, the files are of no use.
    for name in names where name != "." && name != ".." && name != "plan" { unlink("\(joining)/\(name)") }
    unlink(plan)
    guard rmdir(joining) == 0 || errno == ENOENT else { throw .systemCall("rmdir", path: joining) }
    try Descriptor.syncDirectory(of: joining)
  }

  // MARK: Files

  private func makeFolders(of file: String, in directory: String) throws(StorageError) {
    var folder = directory
    for part in file.utf8.dropFirst(directory.utf8.count).split(separator: UInt8(ascii: "/")).dropLast() {
      folder += "/\(String(decoding: part, as: UTF8.self))"
      try Self.makeFolder(folder)
    }
  }

  private static func makeFolder(_ path: String) throws(StorageError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .systemCall("mkdir", path: path) }
  }

  private static func rename(_ old: String, _ new: String) throws(StorageError) {
    guard Glibc.rename(old, new) == 0 else { throw .systemCall("rename", path: new) }
  }

  private static func write(_ text: String, to path: String) throws(StorageError) {
    let file = try Descriptor(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
    let bytes = Array(text.utf8)
    guard Glibc.write(file.number, bytes, bytes.count) == bytes.count else { throw .systemCall("write", path: path) }
    try file.sync()
  }

  /// Returns the name of a new folder for the data files of a replica that cannot continue, or `nil` if they are of no use. The
  /// commits of one that diverged are nowhere else.
  static func aside(after error: ReplicaError?) -> String? {
    switch error {
    case .diverged, .missingStore: break
    default: return nil
    }
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return "replica.diverged-\(now.tv_sec)-\(now.tv_nsec / 1_000_000)"
  }
}
