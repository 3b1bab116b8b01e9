/// Where a file is: a bucket, and a name in it.
package struct ObjectName: Hashable, Sendable {
  /// The bucket's name.
  package let bucket: String
  /// The object's name, with whatever slashes.
  package let name: String

  /// Names an object; nothing is checked.
  package init(bucket: String, name: String) {
    self.bucket = bucket
    self.name = name
  }
}
