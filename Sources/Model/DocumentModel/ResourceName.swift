/// A parsed full resource name: a database, and a path below its documents root.
///
/// The text form is `projects/{p}/databases/{d}/documents[/…]` (firestore-api.md, section 0).
package struct ResourceName: Hashable, Sendable {
  /// The database that the name belongs to.
  package let database: DatabaseID
  /// The path below the documents root.
  package let path: ResourcePath

  package init(database: DatabaseID, path: ResourcePath) {
    self.database = database
    self.path = path
  }

  /// The full name as text.
  package var text: String {
    path.isRoot ? database.documentsRoot : database.documentsRoot + "/" + path.text
  }

  /// Parses the full name of a document.
  /// - Throws: ``ModelError`` with the documented text if a keyword or a `/` is missing, or if an ID is invalid.
  package static func document(_ text: some Collection<UInt8>) throws(ModelError) -> (DatabaseID, DocumentKey) {
    let name = try parse(text, isParent: false)
    guard let key = DocumentKey(name.path) else {
      throw .nameLacksSlash(name: String(decoding: text, as: UTF8.self), index: text.count, isParent: false)
    }
    return (name.database, key)
  }

  /// Parses the full name of a documents root or a document, the form that requests use for a `parent`.
  /// - Throws: ``ModelError`` with the documented text if a keyword is missing, an ID is invalid, or the name is
  ///   that of a collection.
  package static func parent(_ text: some Collection<UInt8>) throws(ModelError) -> ResourceName {
    let name = try parse(text, isParent: true)
    guard name.path.isRoot || name.path.isDocument else {
      throw .nameLacksSlash(name: String(decoding: text, as: UTF8.self), index: text.count, isParent: true)
    }
    return name
  }

  /// Parses `projects/{p}/databases/{d}`.
  /// - Throws: ``ModelError`` if a keyword is missing or an ID is not usable.
  package static func database(_ text: some Collection<UInt8>) throws(ModelError) -> DatabaseID {
    var rest = Array(text)[...]
    let id = try databasePrefix(&rest, whole: text, isParent: true)
    guard rest.isEmpty else { throw .invalidDatabaseID(String(decoding: text, as: UTF8.self)) }
    return id
  }

  private static func parse(_ text: some Collection<UInt8>, isParent: Bool) throws(ModelError) -> ResourceName {
    var rest = Array(text)[...]
    let database = try databasePrefix(&rest, whole: text, isParent: isParent)
    let position = text.count - rest.count
    guard rest.starts(with: "documents".utf8) else {
      throw .nameLacksKeyword(
        name: String(decoding: text, as: UTF8.self), keyword: "documents", index: position, isParent: isParent)
    }
    rest = rest.dropFirst("documents".utf8.count)
    if rest.isEmpty { return ResourceName(database: database, path: .root) }
    guard rest.first == UInt8(ascii: "/") else {
      throw .nameLacksKeyword(
        name: String(decoding: text, as: UTF8.self), keyword: "documents", index: position, isParent: isParent)
    }
    return ResourceName(database: database, path: try ResourcePath(checking: Array(rest.dropFirst())))
  }

  /// Removes `projects/{p}/databases/{d}` and the `/` that follows from the front of `rest`.
  private static func databasePrefix(
    _ rest: inout ArraySlice<UInt8>, whole: some Collection<UInt8>, isParent: Bool
  ) throws(ModelError) -> DatabaseID {
    let project = try keyword("projects", &rest, whole: whole, isParent: isParent)
    let database = try keyword("databases", &rest, whole: whole, isParent: isParent)
    guard let id = DatabaseID(project: project, database: database) else {
      throw .invalidDatabaseID("\(project)/\(database)")
    }
    return id
  }

  private static func keyword(
    _ keyword: String, _ rest: inout ArraySlice<UInt8>, whole: some Collection<UInt8>, isParent: Bool
  ) throws(ModelError) -> String {
    let position = whole.count - rest.count
    guard rest.starts(with: keyword.utf8), rest.dropFirst(keyword.utf8.count).first == UInt8(ascii: "/") else {
      throw .nameLacksKeyword(
        name: String(decoding: whole, as: UTF8.self), keyword: keyword, index: position, isParent: isParent)
    }
    rest = rest.dropFirst(keyword.utf8.count + 1)
    let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    let value = String(decoding: rest[..<end], as: UTF8.self)
    rest = end == rest.endIndex ? rest[end...] : rest[(end + 1)...]
    return value
  }
}
