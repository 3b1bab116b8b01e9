/// The hash functions of the package `hashing`.
enum Digest {
  /// Returns a CRC-32 with a reflected polynomial, least significant byte first, as the engine does.
  static func crc(_ bytes: UnsafeRawBufferPointer, polynomial: UInt32) -> [UInt8] {
    var register: UInt32 = .max
    for byte in bytes {
      register ^= UInt32(byte)
      for _ in 0..<8 { register = register & 1 == 1 ? register >> 1 ^ polynomial : register >> 1 }
    }
    return littleEndian([~register])
  }

  /// The polynomial of `crc32`, reflected.
  static let crc32: UInt32 = 0xEDB8_8320
  /// The polynomial of `crc32c` (Castagnoli), reflected.
  static let crc32c: UInt32 = 0x82F6_3B78

  private static func littleEndian(_ words: [UInt32]) -> [UInt8] {
    words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  /// Returns the message, followed by a one bit, zeros and its length in bits. The result is a multiple of 64 bytes.
  private static func padded(_ bytes: UnsafeRawBufferPointer, isBigEndian: Bool) -> [UInt8] {
    var message = [UInt8](bytes)
    message.append(0x80)
    while message.count % 64 != 56 { message.append(0) }
    let bits = UInt64(bytes.count) * 8
    for index in 0..<8 {
      message.append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * (isBigEndian ? 7 - index : index))))
    }
    return message
  }

  private static func rotateLeft(_ value: UInt32, _ count: UInt32) -> UInt32 { value << count | value >> (32 - count) }

  /// Returns the MD5 digest (RFC 1321).
  static func md5(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    let message = padded(bytes, isBigEndian: false)
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
    let shifts: [[UInt32]] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]
    for start in stride(from: 0, to: message.count, by: 64) {
      let words = (0..<16).map { word in
        (0..<4).reduce(UInt32(0)) { $0 | UInt32(message[start + 4 * word + $1]) << UInt32(8 * $1) }
      }
      var (a, b, c, d) = (state[0], state[1], state[2], state[3])
      for step in 0..<64 {
        let mixed: UInt32
        let word: Int
        switch step / 16 {
        case 0: (mixed, word) = (b & c | ~b & d, step)
        case 1: (mixed, word) = (d & b | ~d & c, (5 * step + 1) % 16)
        case 2: (mixed, word) = (b ^ c ^ d, (3 * step + 5) % 16)
        default: (mixed, word) = (c ^ (b | ~d), 7 * step % 16)
        }
        let sum = a &+ mixed &+ md5Sines[step] &+ words[word]
        (a, d, c, b) = (d, c, b, b &+ rotateLeft(sum, shifts[step / 16][step % 4]))
      }
      state = [state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d]
    }
    return littleEndian(state)
  }

  /// The integer parts of 2^32 times the sines of 1 to 64.
  private static let md5Sines: [UInt32] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
  ]

  /// Returns the SHA-256 digest (FIPS 180-4).
  static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    let message = padded(bytes, isBigEndian: true)
    var state: [UInt32] = [
      0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 { rotateLeft(value, 32 - count) }
    var words = [UInt32](repeating: 0, count: 64)
    for start in stride(from: 0, to: message.count, by: 64) {
      for word in 0..<16 {
        words[word] = (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(message[start + 4 * word + $1]) }
      }
      for word in 16..<64 {
        let s0 = rotate(words[word - 15], 7) ^ rotate(words[word - 15], 18) ^ words[word - 15] >> 3
        let s1 = rotate(words[word - 2], 17) ^ rotate(words[word - 2], 19) ^ words[word - 2] >> 10
        words[word] = words[word - 16] &+ s0 &+ words[word - 7] &+ s1
      }
      var v = state
      for step in 0..<64 {
        let s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)
        let choice = v[4] & v[5] ^ ~v[4] & v[6]
        let first = v[7] &+ s1 &+ choice &+ sha256Roots[step] &+ words[step]
        let s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)
        let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2]
        v = [first &+ s0 &+ majority, v[0], v[1], v[2], v[3] &+ first, v[4], v[5], v[6]]
      }
      for index in 0..<8 { state[index] &+= v[index] }
    }
    return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) } }
  }

  /// The first 32 bits of the fractions of the cube roots of the first 64 primes.
  private static let sha256Roots: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
  ]
}
