import DocumentModel

/// Entries in one block of scratch memory: their bytes from the start, their places from the end. The batch does not
/// own the block.
///
/// An entry has the same form here and in a temporary file: the lengths of key and path in four bytes each, the key,
/// and the path.
struct SortBatch {
  private struct Place {
    var start: UInt32
    var keyCount: UInt32
  }

  /// The bytes before the key of an entry.
  static let headBytes = 8
  /// The memory that an entry takes in addition to its key and its path, in bytes.
  static let entryBytes = headBytes + MemoryLayout<Place>.stride

  let block: UnsafeMutableRawBufferPointer
  private(set) var count = 0
  /// The bytes of all entries, without their places.
  private(set) var bytes = 0
  private var isSorted = true

  init(_ block: UnsafeMutableRawBufferPointer) { self.block = block }

  /// The bytes that are not used yet.
  var room: Int { block.count - bytes - count * MemoryLayout<Place>.stride }

  /// Whether an entry whose key and path have `count` bytes fits.
  func fits(_ count: Int) -> Bool { count + Self.entryBytes <= room }

  /// The places, first the one added last. After ``sort()`` they are in order.
  private var places: UnsafeMutableBufferPointer<Place> {
    let size = count * MemoryLayout<Place>.stride
    let tail = UnsafeMutableRawBufferPointer(rebasing: block[(block.count - size)...])
    return tail.bindMemory(to: Place.self)
  }

  /// Adds an entry that fits.
  mutating func add(_ key: [UInt8], _ path: [UInt8]) {
    key.withUnsafeBytes { key in path.withUnsafeBytes { path in add(key, path) } }
  }

  private mutating func add(_ key: UnsafeRawBufferPointer, _ path: UnsafeRawBufferPointer) {
    let start = bytes
    block.storeBytes(of: UInt32(key.count), toByteOffset: start, as: UInt32.self)
    block.storeBytes(of: UInt32(path.count), toByteOffset: start + 4, as: UInt32.self)
    let keyStart = start + Self.headBytes
    UnsafeMutableRawBufferPointer(rebasing: block[keyStart..<keyStart + key.count]).copyMemory(from: key)
    let pathStart = keyStart + key.count
    UnsafeMutableRawBufferPointer(rebasing: block[pathStart..<pathStart + path.count]).copyMemory(from: path)
    bytes = pathStart + path.count
    count += 1
    places[0] = Place(start: UInt32(start), keyCount: UInt32(key.count))
    isSorted = count == 1
  }

  /// Adds all entries of another batch, which fit.
  mutating func add(_ other: SortBatch) {
    for index in 0..<other.count { add(other.key(index), other.path(index)) }
  }

  mutating func sort() {
    guard !isSorted, let start = block.baseAddress else { return }
    var places = places
    places.sort { a, b in
      let left = UnsafeRawBufferPointer(start: start + Int(a.start) + Self.headBytes, count: Int(a.keyCount))
      let right = UnsafeRawBufferPointer(start: start + Int(b.start) + Self.headBytes, count: Int(b.keyCount))
      return Ordering.raw(left, right) == .less
    }
    isSorted = true
  }

  func key(_ index: Int) -> UnsafeRawBufferPointer {
    let place = places[index]
    let start = Int(place.start) + Self.headBytes
    return UnsafeRawBufferPointer(rebasing: block[start..<start + Int(place.keyCount)])
  }

  func path(_ index: Int) -> UnsafeRawBufferPointer {
    let entry = entry(index)
    return UnsafeRawBufferPointer(rebasing: entry[(Self.headBytes + Int(places[index].keyCount))...])
  }

  /// The bytes of an entry, as a file contains them.
  func entry(_ index: Int) -> UnsafeRawBufferPointer {
    let place = places[index]
    let start = Int(place.start)
    let path = Int(block.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self))
    return UnsafeRawBufferPointer(rebasing: block[start..<start + Self.headBytes + Int(place.keyCount) + path])
  }

  /// Copies the entries to another block, which is as large or larger.
  func moved(to target: UnsafeMutableRawBufferPointer) -> SortBatch {
    var copy = self
    let size = count * MemoryLayout<Place>.stride
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: block[..<bytes]))
    UnsafeMutableRawBufferPointer(rebasing: target[(target.count - size)...])
      .copyMemory(from: UnsafeRawBufferPointer(rebasing: block[(block.count - size)...]))
    copy.relocate(to: target)
    return copy
  }

  private mutating func relocate(to target: UnsafeMutableRawBufferPointer) {
    let (count, bytes, isSorted) = (count, bytes, isSorted)
    self = SortBatch(target)
    (self.count, self.bytes, self.isSorted) = (count, bytes, isSorted)
  }

  /// Keeps only the lowest entries of a sorted batch, and moves them together. Cost: that of sorting their offsets.
  mutating func keepLowest(_ kept: Int) {
    guard kept < count, let start = block.baseAddress else { return }
    let former = places
    let order = (0..<kept).sorted { former[$0].start < former[$1].start }
    var end = 0
    for index in order {
      let count = entry(index).count
      // The entries are moved in the order of their offsets, so no entry is overwritten before it is moved.
      UnsafeMutableRawPointer(start + end).copyMemory(from: start + Int(former[index].start), byteCount: count)
      former[index].start = UInt32(end)
      end += count
    }
    // The places end at the end of the block.
    let size = MemoryLayout<Place>.stride
    UnsafeMutableRawPointer(start + block.count - kept * size)
      .copyMemory(from: start + block.count - count * size, byteCount: kept * size)
    count = kept
    bytes = end
  }
}
