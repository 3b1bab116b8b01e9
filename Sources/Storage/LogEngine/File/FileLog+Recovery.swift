package import KeyValue

extension FileLog {
  /// Opens the log that a crash left, and passes every commit after `base` to `replay`, in order.
  ///
  /// The incomplete record of the last append is ignored. Everything else must be there: if the commits after `base` have
  /// a gap, or a record before the last is damaged, nothing is opened. The last record is written and synced again before
  /// this returns: if only the process crashed, or its last sync failed, the record may be in the cache of the kernel and
  /// not on the disk. The log continues in a new segment, which the first commit makes if the disk is full now.
  ///
  /// Cost: reads the segments with commits after `base`, and holds one in memory.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the log is damaged or belongs to another file; the error of
  ///   `replay`; ``StorageError`` if a call fails.
  package static func recover(
    in folder: any LogFolder, after base: LogPosition, secret: UInt64, sizes: Sizes = Sizes(),
    _ replay: (UnsafeRawBufferPointer, LogPosition) throws(StorageError) -> Void
  ) throws(StorageError) -> FileLog {
    var recovery = try LogReading(folder, base, secret, changesFiles: true)
    try recovery.run(replay)
    let log = FileLog(
      folder, secret: secret, position: recovery.position, epoch: recovery.position.epoch + 1,
      segments: recovery.segments, sizes: sizes)
    do throws(StorageError) { try log.beginSegment(recordBytes: 0) } catch {
      // A full disk can be read. The first commit makes the segment, or fails.
      guard log.failure == nil, case .diskFull = error else { throw error }
    }
    return log
  }

  /// Removes a log whose commits are all in the data file, if there is one: a crash after the mark was closed leaves it.
  /// - Throws: ``StorageError`` if files cannot be removed.
  package static func removeClosed(in folder: any LogFolder) throws(StorageError) { try removeFiles(in: folder) }
}

/// One reading of a log; see ``FileLog/recover(in:after:secret:sizes:_:)`` and ``FileLog/read(in:after:secret:_:)``.
struct LogReading {
  /// The position after the last record read.
  private(set) var position: LogPosition
  /// The segments that the log still has.
  private(set) var segments: [FileLog.Segment] = []

  private let folder: any LogFolder
  private let base: LogPosition
  private let secret: UInt64
  /// Whether this process continues the log. Otherwise another one may append meanwhile.
  private let changesFiles: Bool
  private var files: [(number: UInt64, file: any LogFile, head: LogSegmentHead?)] = []

  init(_ folder: any LogFolder, _ base: LogPosition, _ secret: UInt64, changesFiles: Bool) throws(StorageError) {
    self.folder = folder
    self.base = base
    self.secret = secret
    self.changesFiles = changesFiles
    position = base
    for number in try folder.names().compactMap(FileLog.number).sorted() {
      let file = try folder.open(FileLog.name(number))
      files.append((number, file, try head(of: file, number)))
    }
  }

  mutating func run(_ replay: (UnsafeRawBufferPointer, LogPosition) throws(StorageError) -> Void) throws(StorageError) {
    guard let start = files.lastIndex(where: { $0.head.map { $0.start.sequence <= base.sequence } ?? false }),
      let head = files[start].head
    else { throw damage("it does not have the commits after \(base.sequence)") }
    position = head.start
    try checkBase()
    for index in files[start...].indices {
      let (number, file, head) = files[index]
      // It was created after the commits that must be read.
      if head == nil, index == files.count - 1, !changesFiles { break }
      // A batch is shorter.
      guard file.bytes <= 1 << 32 else { throw damage("segment \(number) has \(file.bytes) bytes") }
      let content = try read(file)
      guard let head else {
        guard index == files.count - 1 else { throw damage("segment \(number) has no head") }
        try checkNoRecord(in: content, from: 0, number)
        // The crash came before its first record. Its name is needed again.
        try folder.remove(FileLog.name(number))
        continue
      }
      guard head.start == position else {
        throw damage("segment \(number) begins after commit \(head.start.sequence), not after \(position.sequence)")
      }
      guard file.bytes >= head.fileBytes else {
        throw damage("segment \(number) has \(file.bytes) of its \(head.fileBytes) bytes")
      }
      segments.append(FileLog.Segment(number: number, first: position.sequence + 1))
      let (last, end) = try readRecords(in: content, replay)
      try checkNoRecord(in: content, from: end, number)
      if changesFiles {
        try writeAgain(0..<LogSegmentHead.bytes, last..<end, of: content, to: file)
      } else {
        try file.sync()
      }
    }
    guard position.sequence >= base.sequence else {
      throw damage("it ends at commit \(position.sequence), but the data file has commit \(base.sequence)")
    }
    // Earlier segments were released, but a loss of power brought their names back, or they were not released yet. They
    // are removed last: until now the head of the next segment may have been in the cache of the kernel only.
    guard changesFiles else { return }
    try removeFiles(before: start)
    for name in try folder.names() where name.hasPrefix(FileLog.sparePrefix) { try folder.remove(name) }
  }

  /// Removes the segments before the one with the first commit after the base, but none that another process holds.
  private mutating func removeFiles(before start: Int) throws(StorageError) {
    var kept = start
    let held = folder.heldSequence() ?? .max
    while kept > 0, let next = files[kept].head, held < next.start.sequence, let head = files[kept - 1].head {
      kept -= 1
      segments.insert(FileLog.Segment(number: files[kept].number, first: head.start.sequence + 1), at: 0)
    }
    for (number, _, _) in files[..<kept] { try folder.remove(FileLog.name(number)) }
  }

  /// Reads the head of a segment. Returns `nil` if the segment was never used under this number.
  private func head(of file: any LogFile, _ number: UInt64) throws(StorageError) -> LogSegmentHead? {
    var bytes = [UInt8](repeating: 0, count: LogSegmentHead.bytes)
    let count = try Self.fill(&bytes, from: file)
    guard count == bytes.count, let head = try Self.head(bytes, folder.path), head.number == number else { return nil }
    guard head.secret == secret else { throw damage("segment \(number) belongs to the log of another file") }
    return head
  }

  private static func head(_ bytes: [UInt8], _ path: String) throws(StorageError) -> LogSegmentHead? {
    var failure: StorageError?
    let head = bytes.withUnsafeBytes { bytes -> LogSegmentHead? in
      do throws(StorageError) { return try LogSegmentHead(bytes, path: path) } catch { failure = error }
      return nil
    }
    if let failure { throw failure }
    return head
  }

  private func read(_ file: any LogFile) throws(StorageError) -> [UInt8] {
    var failure: StorageError?
    let content = [UInt8](unsafeUninitializedCapacity: file.bytes) { buffer, count in
      do throws(StorageError) { count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0) } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return content
  }

  private static func fill(_ buffer: inout [UInt8], from file: any LogFile) throws(StorageError) -> Int {
    var failure: StorageError?
    let count = buffer.withUnsafeMutableBytes { buffer -> Int in
      do throws(StorageError) { return try file.read(into: buffer, at: 0) } catch { failure = error }
      return 0
    }
    if let failure { throw failure }
    return count
  }

  /// Writes the head and the last record of a segment again. The records before were synced before it was appended.
  private func writeAgain(
    _ head: Range<Int>, _ last: Range<Int>, of content: [UInt8], to file: any LogFile
  ) throws(StorageError) {
    var failure: StorageError?
    content.withUnsafeBytes { content in
      do throws(StorageError) {
        for range in [head, last] where !range.isEmpty {
          try file.write(
            UnsafeRawBufferPointer(rebasing: content[range]), UnsafeRawBufferPointer(start: nil, count: 0),
            at: range.lowerBound)
        }
        try file.sync()
      } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Reads records as long as they follow each other. Returns the offset of the last and the offset after it.
  private mutating func readRecords(
    in content: [UInt8], _ replay: (UnsafeRawBufferPointer, LogPosition) throws(StorageError) -> Void
  ) throws(StorageError) -> (last: Int, end: Int) {
    var last = LogSegmentHead.bytes
    var offset = LogSegmentHead.bytes
    var failure: StorageError?
    content.withUnsafeBytes { content in
      do throws(StorageError) {
        while let (head, batch) = record(in: content, at: offset), head.follows(position, secret: secret) {
          position = head.position
          if position.sequence > base.sequence { try replay(batch, position) }
          try checkBase()
          last = offset
          offset += LogRecordHead.recordBytes(batchBytes: head.batchBytes)
        }
      } catch { failure = error }
    }
    if let failure { throw failure }
    return (last, offset)
  }

  /// Returns the record at an offset if its head and its batch are whole, wherever it belongs.
  private func record(
    in content: UnsafeRawBufferPointer, at offset: Int
  ) -> (LogRecordHead, UnsafeRawBufferPointer)? {
    guard offset + LogRecordHead.bytes <= content.count,
      let head = LogRecordHead(UnsafeRawBufferPointer(rebasing: content[offset...]), secret: secret)
    else { return nil }
    let start = offset + LogRecordHead.bytes
    guard head.batchBytes <= content.count - start else { return nil }
    let batch = UnsafeRawBufferPointer(rebasing: content[start..<start + head.batchBytes])
    return head.isHead(of: batch, secret: secret) ? (head, batch) : nil
  }

  /// Checks that no whole record of a later commit follows the place where reading stopped. Since each append is synced
  /// before the next begins, such a record proves that the bytes before it were damaged, not torn by a crash.
  ///
  /// The rest of a segment that is used again has records of earlier commits, which prove nothing.
  private func checkNoRecord(in content: [UInt8], from start: Int, _ number: UInt64) throws(StorageError) {
    let later = content.withUnsafeBytes { content -> (Int, UInt64)? in
      var offset = start
      while offset + LogRecordHead.bytes <= content.count {
        if content.littleEndian32(offset + 4) == LogRecordHead.magic, let (head, _) = record(in: content, at: offset),
          head.sequence > position.sequence
        {
          return (offset, head.sequence)
        }
        offset += 8
      }
      return nil
    }
    if let (offset, sequence) = later {
      throw damage(
        "segment \(number) is not readable at offset \(start), but has commit \(sequence) at offset \(offset)")
    }
  }

  /// Checks that the log and the data file have the same history up to the base.
  private func checkBase() throws(StorageError) {
    if position.sequence == base.sequence, position.chain != base.chain {
      throw damage("its commit \(base.sequence) is not the one in the data file")
    }
  }

  private func damage(_ detail: String) -> StorageError { .corruption(path: folder.path, detail: detail) }
}
