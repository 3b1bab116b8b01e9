import DatabaseService
import Transport

/// The trailer fields with the status of a call (firestore-api.md, section 1.6).
enum GRPCStatus {
  /// The limit of an encoded `grpc-message` in bytes. Clients refuse header blocks of more than 8 KiB.
  private static let messageBytesMax = 4096

  /// Adds the fields of a success.
  static func addOK(to fields: inout HeaderWriter) { fields.add("grpc-status", "0") }

  /// Adds the fields of a failure.
  static func add(_ status: Status, to fields: inout HeaderWriter) {
    fields.add("grpc-status", String(status.code.rawValue))
    fields.add("grpc-message", percentEncoded(status.message))
  }

  /// Encodes a text as printable ASCII. `%` and all other bytes become `%XX`. A long text is truncated between
  /// characters.
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
