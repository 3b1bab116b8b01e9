import Basics
import Digests
import Testing

@Suite struct DigestTests {
  private static let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

  /// From RFC 1321, appendix A.5, and FIPS 180-4's examples.
  static let digests: [(MessageDigest.Algorithm, String, String)] = [
    (.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
    (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
    (.md5, alphabet, "d174ab98d277d9f5a5611c2c9f419d9f"),
    (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      .sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ]

  @Test(arguments: digests)
  func digestMatchesTheStandard(algorithm: MessageDigest.Algorithm, text: String, digest: String) {
    let bytes = Array(text.utf8)
    bytes.withUnsafeBytes { bytes in
      #expect(MessageDigest.compute(algorithm, bytes).map { Hexadecimal.text($0) } == digest)
      for cut in [0, bytes.count / 2, bytes.count] {
        var pieces = MessageDigest(algorithm)
        pieces.update(UnsafeRawBufferPointer(rebasing: bytes[..<cut]))
        pieces.update(UnsafeRawBufferPointer(rebasing: bytes[cut...]))
        let result = pieces.finish()
        #expect(result.map { Hexadecimal.text($0) } == digest)
      }
    }
  }

  /// The check values of the catalogue of parametrised CRC algorithms.
  @Test(arguments: [("", 0), ("123456789", 0xCBF4_3926), ("a", 0xE8B7_BE43)] as [(String, UInt32)])
  func crc32MatchesTheStandard(text: String, sum: UInt32) {
    let bytes = Array(text.utf8)
    bytes.withUnsafeBytes { bytes in
      #expect(Crc32.extend(0, bytes) == sum)
      for cut in 0...bytes.count {
        let first = Crc32.extend(0, UnsafeRawBufferPointer(rebasing: bytes[..<cut]))
        #expect(Crc32.extend(first, UnsafeRawBufferPointer(rebasing: bytes[cut...])) == sum)
      }
    }
  }
}
