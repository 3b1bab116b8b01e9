import Basics
import WireFormat

/// Download tokens, each of which permits its bearer to read one object without evaluating rules.
package enum DownloadToken {
  /// Returns a new token: a UUID of version 4.
  package static func make() -> String {
    var bytes = (0..<16).map { _ in UInt8.random(in: 0...255) }
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let text = Hexadecimal.text(bytes)
    var parts: [Substring] = []
    var rest = text[...]
    for count in [8, 4, 4, 4, 12] {
      parts.append(rest.prefix(count))
      rest = rest.dropFirst(count)
    }
    return parts.joined(separator: "-")
  }

  /// Whether a client's text is one of an object's tokens. The time does not depend on how much of it is right.
  package static func isAmong(_ tokens: [String], _ text: String) -> Bool {
    var isFound = false
    for token in tokens where token.utf8.count == text.utf8.count {
      let difference = zip(token.utf8, text.utf8).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
      if difference == 0 { isFound = true }
    }
    return isFound
  }
}

extension FileStore {
  /// Adds a download token to an object if it has none, and changes nothing else.
  /// - Parameters:
  ///   - checked: the object that the caller was authorized to read.
  ///   - check: called with the current object or `nil`, and whether it is no longer `checked`.
  /// - Throws: ``FilesError/noSuchObject(_:)`` if the object does not exist; the errors of `check`.
  package func addDownloadToken(
    to checked: StoredObject, check: (StoredObject?, _ isReplaced: Bool) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    let name = checked.name
    return try change { (transaction, _, _) throws(FilesError) in
      let found = try transaction.object(name)
      let isUnchanged = found?.generation == checked.generation && found?.metageneration == checked.metageneration
      try check(found, !isUnchanged)
      guard var object = found else { throw .noSuchObject(name) }
      guard object.attributes.metadata.downloadTokens.isEmpty else { return object }
      object.attributes.metadata.downloadTokens = [DownloadToken.make()]
      try transaction.write(FilesKeySpace.object(name), ObjectRecord.encode(object))
      return object
    }
  }
}
