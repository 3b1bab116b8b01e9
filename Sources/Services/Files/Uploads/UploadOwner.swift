/// The owner to whose quota of concurrent uploads an upload belongs.
package struct UploadOwner: Hashable, Sendable {
  /// The stored form: a letter for the kind of owner, and the bytes of its ID.
  let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the owner of the uploads of a signed-in user.
  package static func user(_ uid: String) -> UploadOwner { UploadOwner(bytes: [UInt8(ascii: "u")] + uid.utf8) }

  /// Returns the owner of the uploads of all unauthenticated callers at an address.
  package static func address(_ address: String) -> UploadOwner {
    UploadOwner(bytes: [UInt8(ascii: "a")] + address.utf8)
  }
}
