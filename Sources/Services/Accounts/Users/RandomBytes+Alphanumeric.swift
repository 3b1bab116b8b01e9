import CSodium

extension RandomBytes {
  /// Returns `count` random letters and digits. Each carries nearly six bits.
  package static func alphanumeric(_ count: Int) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    let bytes = (0..<count).map { _ in alphabet[Int(randombytes_uniform(UInt32(alphabet.count)))] }
    return String(decoding: bytes, as: UTF8.self)
  }
}
