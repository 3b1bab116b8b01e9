package import Files

/// An object that a caller wants to store: everything but its content.
package struct ObjectDraft: Sendable {
  package var name: ObjectName
  package var attributes: ObjectAttributes
  /// The conditions that the existing object must meet when the content is complete.
  package var conditions = ObjectConditions()
  /// The checksums that the content must have.
  package var declared = DeclaredChecksums()
  /// The possible lengths of the content, in bytes, or `nil` if its length is unknown. A resumable upload must have
  /// the first of them.
  package var sizes: ClosedRange<Int>?

  /// Describes an object of unknown length.
  package init(_ name: ObjectName, _ attributes: ObjectAttributes = ObjectAttributes()) {
    self.name = name
    self.attributes = attributes
  }
}
