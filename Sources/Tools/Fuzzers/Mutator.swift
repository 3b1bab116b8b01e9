/// A generator of new inputs from a corpus. The same seed produces the same inputs.
struct Mutator {
  /// Longer inputs are cut, because short ones suffice to show most errors.
  static let inputBytesMax = 4096

  private let corpus: [[UInt8]]
  private let tokens: [[UInt8]]
  private var state: UInt64

  init(_ fuzzer: Fuzzer, seed: UInt64) {
    corpus = fuzzer.corpus
    tokens = fuzzer.tokens.map { Array($0.utf8) }
    state = seed
  }

  /// Returns the next input: an input of the corpus with one to eight changes.
  mutating func next() -> [UInt8] {
    var input = corpus[below(corpus.count)]
    for _ in 0...below(8) { change(&input) }
    if input.count > Self.inputBytesMax { input.removeLast(input.count - Self.inputBytesMax) }
    return input
  }

  private mutating func change(_ input: inout [UInt8]) {
    let place = below(input.count + 1)
    switch below(tokens.isEmpty ? 7 : 9) {
    case 0 where place < input.count: input[place] ^= 1 << UInt8(below(8))
    case 1 where place < input.count: input[place] = edge()
    case 2: input.insert(edge(), at: place)
    case 3: input.removeSubrange(place..<min(input.count, place + below(16)))
    case 4:
      let copied = Array(input[place..<min(input.count, place + below(32))])
      input.insert(contentsOf: copied, at: below(input.count + 1))
    case 5:
      // Join the start of one input and the end of another.
      let other = corpus[below(corpus.count)]
      input = Array(input[..<place]) + other[below(other.count + 1)...]
    case 6: input.insert(UInt8(truncatingIfNeeded: random()), at: place)
    case 7, 8: input.insert(contentsOf: tokens[below(tokens.count)], at: place)
    default: input.append(edge())
    }
  }

  /// Returns a byte at a boundary of a character class or encoding.
  private mutating func edge() -> UInt8 {
    [0, 1, 0x0a, 0x20, 0x22, 0x2f, 0x30, 0x39, 0x5c, 0x7f, 0x80, 0xbf, 0xc0, 0xed, 0xf4, 0xff][below(16)]
  }

  private mutating func below(_ bound: Int) -> Int { Int(random() % UInt64(max(1, bound))) }

  private mutating func random() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
