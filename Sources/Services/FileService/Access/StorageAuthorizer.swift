import DatabaseService
import DocumentModel
import Files
import RulesEngine
import WireFormat

/// Decides which callers may read and write objects: administrators may do everything, other callers what rules
/// allow. The rules are those in force at the time of the decision.
struct StorageAuthorizer: Sendable {
  let documents: FirestoreService
  let rules: FileRules
  let project: String?

  /// Authorizes a caller for one operation. `name` is an object's name; for a list it is the prefix without its
  /// last slash.
  /// - Throws: ``FilesError/denied(_:)`` if the caller may not do it.
  func grant(
    _ method: RulesMethod, _ name: ObjectName, as caller: Caller, before: StoredObject? = nil,
    after: StoredObject? = nil, isObserved: Bool = true
  ) throws(FilesError) -> FileGrant {
    let access = try access(of: caller, to: name.bucket)
    do throws(FileDenial) {
      return try access.grant(method, bucket: name.bucket, name: name.name, isObserved: isObserved) { request in
        request.resource = before.map { Self.fields(of: $0) }
        request.newResource = after.map { Self.fields(of: $0) }
      }
    } catch { throw denial(error) }
  }

  /// Authorizes an upload before its content arrives, with the data known by then.
  ///
  /// Returns whether the decision is final. It is not if the rules use checksums, which are known only at the end.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny the upload.
  func isDecidedEarly(
    _ before: StoredObject?, _ after: StoredObject, as caller: Caller
  ) throws(FilesError) -> Bool {
    switch try access(of: caller, to: after.name.bucket) {
    case .unrestricted: return true
    case .restricted(let authorizer):
      guard authorizer.looksAtChecksums else {
        _ = try grant(.create, after.name, as: caller, before: before, after: after, isObserved: false)
        return true
      }
      var request = FileRequest(.create, bucket: after.name.bucket, name: after.name.name)
      request.resource = before.map { Self.fields(of: $0) }
      var fields = Self.fields(of: after)
      for field in FileRules.lateFields { fields[field] = nil }
      request.newResource = fields
      do throws(FileDenial) { return try authorizer.decideEarly(request) } catch { throw denial(error) }
    }
  }

  /// Notifies the observer of decisions, if one exists, of an upload that ``isDecidedEarly(_:_:as:)`` has denied. Early
  /// decisions are not observed otherwise: several lengths may be tried, and an allowed upload is authorized again.
  func noteEarlyDenial(_ before: StoredObject?, _ after: StoredObject, as caller: Caller) {
    guard case .restricted(let authorizer)? = try? access(of: caller, to: after.name.bucket) else { return }
    var request = FileRequest(.create, bucket: after.name.bucket, name: after.name.name)
    request.resource = before.map { Self.fields(of: $0) }
    request.newResource = Self.fields(of: after)
    authorizer.noteEarlyDenial(request)
  }

  /// Returns what a caller may do with the objects of a bucket.
  /// - Throws: ``FilesError/denied(_:)`` if no rules are loaded and the caller is not an administrator.
  func access(of caller: Caller, to bucket: String) throws(FilesError) -> FilesAccess {
    do throws(FileDenial) {
      return try FilesAccess(of: caller, by: rules, documents, documentsIn: database(of: bucket))
    } catch { throw denial(error) }
  }

  private func denial(_ denial: FileDenial) -> FilesError {
    guard documents.mode.explainsDenials else { return .denied("Permission denied.") }
    return switch denial {
    case .withoutRules: .denied("Permission denied. Storage Emulator has no loaded ruleset.")
    case .denied(.get): .denied("Permission denied. No READ permission.")
    case .denied(.list): .denied("Permission denied. No LIST permission.")
    case .denied(.create), .denied(.update), .denied(.delete): .denied("Permission denied. No WRITE permission.")
    }
  }

  /// The database that `firestore.get()` reads: the default database of the bucket's project.
  private func database(of bucket: String) -> DatabaseID? {
    var owner = project
    for ending in [".appspot.com", ".firebasestorage.app"] where bucket.hasSuffix(ending) {
      owner = String(bucket.dropLast(ending.count))
    }
    return owner.flatMap { DatabaseID(project: $0) }
  }

  /// An object's fields as rules see them (storage-api.md, section 12).
  private static func fields(of object: StoredObject) -> MapValue {
    var map = MapValue()
    map["name"] = .string(object.name.name)
    map["bucket"] = .string(object.name.bucket)
    map["generation"] = .integer(object.generation)
    map["metageneration"] = .integer(object.metageneration)
    map["size"] = .integer(Int64(object.content.size))
    map["timeCreated"] = .timestamp(Timestamp(uncheckedMicroseconds: object.created))
    map["updated"] = .timestamp(Timestamp(uncheckedMicroseconds: object.updated))
    map["md5Hash"] = .string(Base64.encode(object.content.md5))
    map["crc32c"] = .string(Base64.encode(object.content.crc32cBytes))
    map["etag"] = .string(object.etag)
    map["contentDisposition"] = .string(ContentDisposition.text(of: object))
    map["contentEncoding"] = .string(object.attributes.contentEncoding ?? "identity")
    map["contentLanguage"] = object.attributes.contentLanguage.map(Value.string) ?? .null
    map["contentType"] = .string(object.contentType)
    var custom = object.attributes.metadata
    custom.downloadTokens = []
    var metadata = MapValue()
    for (name, value) in custom.entries { metadata[name] = .string(value) }
    map["metadata"] = .map(metadata)
    return map
  }
}
