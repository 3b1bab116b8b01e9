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
  /// If more time than this has passed since the last ID, the next ID starts a new burst.
  static let burstPauseNanoseconds: UInt64 = 10_000_000
  /// The maximum number of IDs in a burst, so that long bursts do not fill a part of the ID space.
  static let burstIDsMax = 1000
  /// The maximum distance between the first halves of consecutive IDs in a burst.
  private static let stepMax: UInt64 = 1 << 20

  private static let shared = Mutex(DocumentIDs())

  private var first: UInt64 = 0
  private var last: UInt64 = 0
  private var left = 0

  /// Returns the next ID. Cost: two reads of the system's random generator, each a system call.
  static func next() -> [UInt8] {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let nanoseconds = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    return shared.withLock { $0.next(at: nanoseconds) }
  }

  /// Returns the next ID at a time of a monotonic clock.
  mutating func next(at nanoseconds: UInt64) -> [UInt8] {
    if left == 0 || nanoseconds > last + Self.burstPauseNanoseconds {
      first = UInt64.random(in: 0..<Self.tenCharacters)
      left = Self.burstIDsMax
    } else {
      first = (first + UInt64.random(in: 1...Self.stepMax)) % Self.tenCharacters
    }
    left -= 1
    last = nanoseconds
    var id: [UInt8] = []
    id.reserveCapacity(20)
    Self.append(first, to: &id)
    Self.append(UInt64.random(in: 0..<Self.tenCharacters), to: &id)
    return id
  }

  /// Returns the ID of the document that a request creates: the same one whenever the request arrives. Such IDs share no
  /// pages.
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
