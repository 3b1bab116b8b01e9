/// The name of an object: a bucket, and a name in it. Names are compared by their bytes.
package struct ObjectName: Hashable, Sendable {
  package let bucket: String
  /// The name in the bucket. It may contain slashes.
  package let name: String

  /// The longest name of an object, in bytes of UTF-8.
  package static let nameBytesMax = 1024
  /// The longest name of a bucket, in bytes.
  package static let bucketBytesMax = 222

  /// Creates a name without validating it.
  package init(bucket: String, name: String) {
    self.bucket = bucket
    self.name = name
  }

  /// Creates a name after validating it.
  /// - Throws: ``FilesError/invalidBucket(_:)`` or ``FilesError/invalidName(_:)`` if the name is not valid.
  package init(checking bucket: String, _ name: String) throws(FilesError) {
    guard Self.isBucket(bucket) else { throw .invalidBucket(bucket) }
    let bytes = name.utf8
    guard (1...Self.nameBytesMax).contains(bytes.count) else {
      throw .invalidName("an object's name has 1 to \(Self.nameBytesMax) bytes of UTF-8")
    }
    guard !bytes.contains(where: { $0 == 0x0A || $0 == 0x0D || $0 == 0 }) else {
      throw .invalidName("an object's name must not contain a line break or NUL")
    }
    guard !bytes.elementsEqual(".".utf8), !bytes.elementsEqual("..".utf8) else {
      throw .invalidName("an object cannot be named . or ..")
    }
    self.init(bucket: bucket, name: name)
  }

  /// Returns whether a text is a valid bucket name: letters, digits, `-`, `_` and `.`, with a letter or digit at
  /// both ends.
  package static func isBucket(_ text: String) -> Bool {
    let bytes = text.utf8
    guard (1...bucketBytesMax).contains(bytes.count), let first = bytes.first, let last = bytes.last else {
      return false
    }
    return isAlphanumeric(first) && isAlphanumeric(last)
      && bytes.allSatisfy {
        isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".")
      }
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26
  }

  package static func == (left: ObjectName, right: ObjectName) -> Bool {
    left.bucket.utf8.elementsEqual(right.bucket.utf8) && left.name.utf8.elementsEqual(right.name.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    for byte in bucket.utf8 { hasher.combine(byte) }
    hasher.combine(UInt8(0))
    for byte in name.utf8 { hasher.combine(byte) }
  }
}
