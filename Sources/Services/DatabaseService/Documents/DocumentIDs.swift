import Glibc
import Synchronization

/// The ids the server makes: 20 letters and digits, as client SDKs make them (firestore-api.md, section 0).
///
/// Each is as likely as any other, but those of a burst begin nearly alike and rise. So the rows and index entries of
/// documents that are made together lie on a few pages that commit together, not each on pages of its own, which the
/// disk would have to be given one by one. The second half of an id is random for itself: nobody guesses one from
/// another.
struct DocumentIDs {
  /// 62 to the power of 10: how many texts of ten characters there are.
  private static let tenCharacters: UInt64 = 839_299_365_868_340_224
  /// In the order of their bytes, so that numbers and texts rise alike.
  private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
  /// Whoever comes later than this after the last id begins elsewhere.
  static let burstPauseNanoseconds: UInt64 = 10_000_000
  /// Ids of one burst, so that however long it lasts, no part of the ids fills up.
  static let burstIDsMax = 1000
  /// How far apart the first halves of two ids of a burst are, at most.
  private static let stepMax: UInt64 = 1 << 20

  private static let shared = Mutex(DocumentIDs())

  private var first: UInt64 = 0
  private var last: UInt64 = 0
  private var left = 0

  /// The next id. Cost: two draws from the system's generator, each a system call.
  static func next() -> [UInt8] {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    let nanoseconds = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    return shared.withLock { $0.next(at: nanoseconds) }
  }

  /// The next id at a moment of a clock that does not go back.
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
