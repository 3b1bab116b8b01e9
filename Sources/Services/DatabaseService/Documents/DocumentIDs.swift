import Basics
import DocumentModel
import Glibc
import Synchronization

/// Generates document IDs: 20 letters and digits, as client SDKs do (firestore-api.md, section 0).
///
/// All IDs are equally likely, but the IDs of a burst have similar beginnings and ascend. The rows and index entries
/// of documents that are created together are therefore on a few shared pages. With unrelated IDs each would need a
/// page of its own, which the disk would have to write separately. The second half of an ID is independently random,
/// so an ID cannot be guessed from another.
struct DocumentIDs {
  /// 62 to the power of 10: the number of strings of ten characters.
  private static let tenCharacters: UInt64 = 839_299_365_868_340_224
  /// In byte order, so that strings sort as their numbers do.
  private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

  private static let shared = Mutex(DocumentIDs())

  private var firstHalves = AscendingNumbers(below: tenCharacters)

  /// Returns the next ID. Cost: two reads of the system's random generator, each a system call.
  static func next() -> [UInt8] {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let nanoseconds = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    return shared.withLock { $0.next(at: nanoseconds) }
  }

  /// Returns the next ID at a time of a monotonic clock.
  mutating func next(at nanoseconds: UInt64) -> [UInt8] {
    var id: [UInt8] = []
    id.reserveCapacity(20)
    Self.append(firstHalves.next(at: nanoseconds), to: &id)
    Self.append(UInt64.random(in: 0..<Self.tenCharacters), to: &id)
    return id
  }

  /// Returns the ID of the document that a request creates: the same one whenever the request arrives, on every node. The
  /// IDs ascend as those of the requests do, except at a few places where the remainder starts again. Nodes of several
  /// builds must agree on the ID, so the way to compute it is fixed.
  static func id(of request: RequestID) -> [UInt8] {
    let (first, second) = request.numbers
    var id: [UInt8] = []
    id.reserveCapacity(20)
    append(first % tenCharacters, to: &id)
    append(second % tenCharacters, to: &id)
    return id
  }

  private static func append(_ number: UInt64, to id: inout [UInt8]) {
    let end = id.count + 10
    id.append(contentsOf: repeatElement(0, count: 10))
    var rest = number
    for index in 1...10 {
      id[end - index] = alphabet[Int(rest % 62)]
      rest /= 62
    }
  }
}
