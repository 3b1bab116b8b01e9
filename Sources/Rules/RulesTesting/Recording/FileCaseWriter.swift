import DocumentModel
import RulesEngine

/// Writes requests for files in the format that ``FileCaseReader`` reads.
struct FileCaseWriter {
  let values: CaseWriter

  /// The members of a file that are always written. The server sets the others in part, and some differ between two
  /// uploads of the same file, so those are written only if the rules contain their names.
  private static let ordinary = ["size", "contentType", "metadata"]

  /// Returns the members that describe a request: the stored file, the method with the path, and the new file.
  /// - Throws: ``InexpressibleCase`` if the format has no notation for the request.
  func request(_ request: FileTestRequest, time: Timestamp) throws(InexpressibleCase) -> [CaseWriter.Member] {
    guard let method = request.methods.first, request.methods.count == 1 else {
      throw InexpressibleCase("a request for a file must have one method")
    }
    let path = request.bucket == RuleTestFiles.bucket ? request.name : request.path
    guard RuleTestFiles.place(path) == (request.bucket, request.name), method == .list || !request.name.isEmpty else {
      throw InexpressibleCase("a file has a name that is not a path")
    }
    let standard = RuleTestFiles.file(request.bucket, request.name, time)
    var members: [CaseWriter.Member] = []
    if let before = request.before, method != .list {
      let stored = try values.value(.map(differences(before, from: standard)))
      members.append(("files", CaseWriter.object([(path, stored)])))
    }
    members.append((method.rawValue, CaseWriter.quoted(path)))
    switch method {
    case .create: members.append(("data", try data(request.after, from: standard)))
    case .update:
      guard let before = request.before else { throw InexpressibleCase("the updated file does not exist") }
      members.append(("data", try data(request.after, from: before)))
    case .get, .list, .delete: break
    }
    return members
  }

  private func data(_ file: MapValue?, from base: MapValue) throws(InexpressibleCase) -> String {
    guard let file else { throw InexpressibleCase("an upload without a file") }
    return try values.value(.map(differences(file, from: base)))
  }

  /// Returns the members that a test must set to turn `base` into `file`.
  private func differences(_ file: MapValue, from base: MapValue) -> MapValue {
    var changed = MapValue()
    for name in RuleTestFiles.members where Self.ordinary.contains(name) || values.mentions(name) {
      guard let value = file[name], value != base[name] else { continue }
      guard case .map(var metadata) = value else {
        changed[name] = value
        continue
      }
      // A null removes an entry.
      guard case .map(let old)? = base[name] else { continue }
      for (key, entry) in old.entries {
        if metadata[key] == nil { metadata[key] = .null } else if metadata[key] == entry { metadata[key] = nil }
      }
      changed[name] = .map(metadata)
    }
    return changed
  }
}
