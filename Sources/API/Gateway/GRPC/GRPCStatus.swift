import DatabaseService
import Transport

/// How a call ended, as the fields that stand behind its messages (firestore-api.md, section 1.6).
enum GRPCStatus {
  /// Bytes of an encoded `grpc-message`: clients refuse blocks of fields beyond 8 KiB.
  private static let messageBytesMax = 4096

  /// Adds the fields of success.
  static func addOK(to fields: inout HeaderWriter) { fields.add("grpc-status", "0") }

  /// Adds the fields of a failure.
  static func add(_ status: Status, to fields: inout HeaderWriter) {
    fields.add("grpc-status", String(status.code.rawValue))
    fields.add("grpc-message", percentEncoded(status.message))
  }

  /// A text of printable ASCII: other bytes, and `%`, are written as `%XX`. Cut, between characters, where it is long.
  static func percentEncoded(_ text: String) -> String {
    var encoded: [UInt8] = []
    for scalar in text.unicodeScalars {
      let start = encoded.count
      for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
        if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%") {
          encoded.append(byte)
        } else {
          PercentEncoding.append(byte, to: &encoded)
        }
      }
      if encoded.count > messageBytesMax {
        encoded.removeLast(encoded.count - start)
        break
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
