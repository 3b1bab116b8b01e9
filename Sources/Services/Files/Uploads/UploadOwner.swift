/// Whose share of the uploads under way an upload takes.
package struct UploadOwner: Hashable, Sendable {
  /// What tells owners apart, as it is stored: a letter for the kind, and bytes.
  let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Who is signed in, by the bytes of the id.
  package static func user(_ uid: String) -> UploadOwner { UploadOwner(bytes: [UInt8(ascii: "u")] + uid.utf8) }

  /// Everybody at an address who is not signed in.
  package static func address(_ address: String) -> UploadOwner {
    UploadOwner(bytes: [UInt8(ascii: "a")] + address.utf8)
  }
}
