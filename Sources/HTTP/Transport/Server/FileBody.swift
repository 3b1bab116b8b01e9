import CUV
import Dispatch
import Glibc

/// Part of a file as the body of a reply. Over plain HTTP/1 the kernel sends it; elsewhere it is read in slices.
///
/// What lies in the page cache is read on the loop; what must come from the disk is read by a worker first, so that a
/// slow disk holds up one reply and not the loop. Belongs to the exchange's loop.
package final class FileBody: BodySource {
  /// What one call hands to the kernel, and what a worker fetches from the disk at a time.
  static let windowBytes = 1 << 20
  /// Up to this much is copied rather than sent by the kernel: one call instead of two.
  static let copiedBytesMax = 64 << 10
  /// How far apart lie the bytes that are probed: the kernel reads ahead in runs of at least this length.
  private static let probeBytes = 128 << 10

  private static let pageBytes = max(1, Int(sysconf(Int32(_SC_PAGESIZE))))

  private static let workers = DispatchQueue(label: "hearth.file-reads", attributes: .concurrent)

  let descriptor: Int32
  private(set) var offset: Int
  private(set) var remainingBytes: Int
  private let isInMemory: Bool
  private let exchange: Exchange
  private var isFetching = false
  private var hasFailed = false
  /// Bytes from `offset` on that a worker has fetched, or that were found in memory.
  private var bytesAtHand = 0

  /// Takes over an open file, which is closed in the end.
  ///
  /// - Parameter isInMemory: says that reading never waits for a disk, as on a file system in memory.
  package init(descriptor: Int32, offset: Int, count: Int, isInMemory: Bool, exchange: Exchange) {
    self.descriptor = descriptor
    self.offset = offset
    remainingBytes = count
    self.isInMemory = isInMemory
    self.exchange = exchange
  }

  deinit {
    close(descriptor)
  }

  /// Whether the next `count` bytes can be read without waiting; where they cannot, they are fetched, and the exchange
  /// resumed.
  func isAtHand(_ count: Int, _ exchange: Exchange) -> Bool {
    if isInMemory || hasFailed || bytesAtHand >= count { return true }
    if isFetching { return false }
    if isCached(count) {
      bytesAtHand = count
      return true
    }
    fetch(min(remainingBytes, Self.windowBytes))
    return false
  }

  /// Bytes were sent.
  func advance(_ count: Int) {
    offset += count
    remainingBytes -= count
    bytesAtHand = max(0, bytesAtHand - count)
  }

  /// Appends what can be read without waiting.
  package func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if hasFailed { return .failed }
    guard remainingBytes > 0 else { return .finished }
    let count = min(remainingBytes, Self.copiedBytesMax)
    var read = 0
    // What is in memory is read with one call, and only where that fails is asked why.
    if !isInMemory && !isFetching && bytesAtHand < count {
      read = append(count, to: &out) { cuv_read_cached(descriptor, $0, UInt(count), offset) }
    }
    if read <= 0 {
      guard isAtHand(count, exchange) else { return .waiting }
      read = append(count, to: &out) { pread(descriptor, $0, count, off_t(offset)) }
    }
    // A file that became shorter is none that this server wrote.
    guard read > 0 else { return .failed }
    advance(read)
    return remainingBytes == 0 ? .finished : .more
  }

  /// Appends what `read` puts into room for `count` bytes; returns what it returned.
  private func append(_ count: Int, to out: inout [UInt8], _ read: (UnsafeMutableRawPointer) -> Int) -> Int {
    let start = out.count
    out.reserveCapacity(start + count)
    out.append(contentsOf: repeatElement(0, count: count))
    let done = out.withUnsafeMutableBytes { bytes in bytes.baseAddress.map { read($0 + start) } ?? -1 }
    out.removeLast(count - max(0, done))
    return done
  }

  /// Whether the page cache holds the next `count` bytes, as the kernel says, or where it does not, as far as probes
  /// tell. Those that are at hand are not looked at again.
  private func isCached(_ count: Int) -> Bool {
    let (first, last) = (offset + bytesAtHand, offset + count - 1)
    let pages = cuv_cached_pages(descriptor, UInt(first), UInt(last - first + 1))
    if pages >= 0 { return pages > last / Self.pageBytes - first / Self.pageBytes }
    return stride(from: first, to: last, by: Self.probeBytes).allSatisfy(probe) && probe(last)
  }

  private func probe(_ position: Int) -> Bool {
    var byte: UInt8 = 0
    return cuv_read_cached(descriptor, &byte, 1, position) == 1
  }

  private func fetch(_ count: Int) {
    isFetching = true
    let descriptor = descriptor
    let offset = offset
    let bound = LoopBound(self, to: exchange.loop)
    Self.workers.async {
      let isRead = Self.read(descriptor, offset, count)
      bound.later { body in
        body.isFetching = false
        if isRead { body.bytesAtHand = count } else { body.hasFailed = true }
        body.exchange.resume()
      }
    }
  }

  /// Reads bytes for the page cache's sake.
  private static func read(_ descriptor: Int32, _ offset: Int, _ count: Int) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: copiedBytesMax, alignment: 16) { buffer in
      var done = 0
      while done < count {
        let read = pread(descriptor, buffer.baseAddress, min(count - done, buffer.count), off_t(offset + done))
        if read < 0 && errno == EINTR { continue }
        guard read > 0 else { return false }
        done += read
      }
      return true
    }
  }
}
