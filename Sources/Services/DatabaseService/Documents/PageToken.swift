import DocumentModel

/// The position at which a listing continues, bound to the parameters of the listing.
///
/// Layout: a hash of the parameters (8 bytes), a hash of that hash and the position (8 bytes), the position.
enum PageToken {
  /// The parameters of the listing. Other listings reject the token.
  struct Binding {
    fileprivate let hash: UInt64

    init(_ parts: String...) {
      var hash = PageToken.seed
      for part in parts { hash = PageToken.mix(hash, Array(part.utf8) + [0xFF]) }
      self.hash = hash
    }
  }

  static func encode(_ position: [UInt8], _ binding: Binding) -> [UInt8] {
    var token: [UInt8] = []
    withUnsafeBytes(of: binding.hash.littleEndian) { token.append(contentsOf: $0) }
    withUnsafeBytes(of: mix(binding.hash, position).littleEndian) { token.append(contentsOf: $0) }
    return token + position
  }

  /// Returns the position in a token.
  /// - Throws: `INVALID_ARGUMENT` if the bytes are not a token of this listing.
  static func position(_ token: [UInt8], _ binding: Binding) throws -> [UInt8] {
    let position = Array(token.dropFirst(16))
    guard token.count >= 16, token == encode(position, binding) else {
      throw ModelError.invalidPageToken
    }
    return position
  }

  private static let seed: UInt64 = 0xCBF2_9CE4_8422_2325

  /// FNV-1a. It detects mistakes, not forgery, by which a client would gain nothing.
  private static func mix(_ start: UInt64, _ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(start) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }
}
