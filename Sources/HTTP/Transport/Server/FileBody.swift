import Basics
import CUV
import Glibc

/// Part of a file as the body of a response. Over plain HTTP/1 the kernel sends it. Otherwise it is read in slices.
///
/// The loop reads bytes that are in the page cache. A worker reads the others from the disk first, so that a slow
/// disk delays one response and not the whole loop. Belongs to the exchange's loop.
package final class FileBody: BodySource {
  /// The number of bytes passed to the kernel per call, and fetched from the disk by a worker at a time.
  static let windowBytes = 1 << 20
  /// Files up to this size are copied into the output instead: one system call rather than two.
  static let copiedBytesMax = 64 << 10
  /// The distance between probed bytes. The kernel reads ahead at least this far.
  private static let probeBytes = 128 << 10

  private static let pageBytes = max(1, Int(sysconf(Int32(_SC_PAGESIZE))))

  private static let workers = BoundedWorkers("file-reads", threads: WorkerLimits.fileReadsThreadsMax)

  let descriptor: Int32
  private(set) var offset: Int
  private(set) var remainingBytes: Int
  private let isInMemory: Bool
  private let exchange: Exchange
  private let lease: AnyObject?
  private var isFetching = false
  private var hasFailed = false
  /// The number of bytes from `offset` that a worker has fetched or that were found in the page cache.
  private var bytesAtHand = 0

  /// Takes ownership of an open file and closes it at the end.
  ///
  /// - Parameters:
  ///   - isInMemory: whether reading never waits for a disk, as on a file system in memory.
  ///   - lease: an object that is released after the file is closed, for a caller that counts open files.
  package init(
    descriptor: Int32, offset: Int, count: Int, isInMemory: Bool, exchange: Exchange, lease: AnyObject? = nil
  ) {
    self.descriptor = descriptor
    self.offset = offset
    remainingBytes = count
    self.isInMemory = isInMemory
    self.exchange = exchange
    self.lease = lease
  }

  deinit {
    close(descriptor)
  }

  /// Whether the next `count` bytes can be read without waiting. If not, a worker fetches them and then resumes the
  /// exchange.
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

  /// Moves past `count` sent bytes.
  func advance(_ count: Int) {
    offset += count
    remainingBytes -= count
    bytesAtHand = max(0, bytesAtHand - count)
  }

  /// Appends the bytes that can be read without waiting.
  package func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if hasFailed { return .failed }
    guard remainingBytes > 0 else { return .finished }
    let count = min(remainingBytes, Self.copiedBytesMax)
    var read = 0
    // Most reads find their bytes in memory with this one call. Only if it fails, find out why.
    if !isInMemory && !isFetching && bytesAtHand < count {
      read = append(count, to: &out) { cuv_read_cached(descriptor, $0, UInt(count), offset) }
    }
    if read <= 0 {
      guard isAtHand(count, exchange) else { return .waiting }
      read = append(count, to: &out) { pread(descriptor, $0, count, off_t(offset)) }
    }
    // The file became shorter, so another program has changed it.
    guard read > 0 else { return .failed }
    advance(read)
    return remainingBytes == 0 ? .finished : .more
  }

  /// Appends the bytes that `read` writes into room for `count` bytes. Returns the result of `read`.
  private func append(_ count: Int, to out: inout [UInt8], _ read: (UnsafeMutableRawPointer) -> Int) -> Int {
    let start = out.count
    out.reserveCapacity(start + count)
    out.append(contentsOf: repeatElement(0, count: count))
    let done = out.withUnsafeMutableBytes { bytes in bytes.baseAddress.map { read($0 + start) } ?? -1 }
    out.removeLast(count - max(0, done))
    return done
  }

  /// Whether the page cache holds the next `count` bytes. The kernel reports this if it can, otherwise some bytes
  /// are probed. Bytes known to be available are not checked again.
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
    // The response has begun: it must not be refused.
    Self.workers.runAlways {
      let isRead = Self.read(descriptor, offset, count)
      bound.later { body in
        body.isFetching = false
        if isRead { body.bytesAtHand = count } else { body.hasFailed = true }
        body.exchange.resume()
      }
    }
  }

  /// Reads bytes only to bring them into the page cache.
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
