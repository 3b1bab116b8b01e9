import DocumentModel

/// Another form of a nested pipeline that aggregates the documents whose field equals a variable: a pipeline that
/// groups all documents by the field, once for all rows of the enclosing pipeline.
struct LookupPlan: Sendable {
  /// The place of the variable in the enclosing row.
  let variable: Int
  /// The pipeline that groups. It reads no variables, and ends in its `aggregate` stage.
  let body: PipelineBody

  /// The field of the groups' keys. A pipeline that has a field with this name is not rewritten.
  static let keyName = "\u{1}"

  /// Returns the stages that group, and the name of the variable, or `nil` if the nested pipeline has another form than
  /// a collection or collection group, `where` stages, and `aggregate` without groups.
  static func rewritten(_ stages: [PipelineCall]) -> (stages: [PipelineCall], variable: String)? {
    guard let source = stages.first, let last = stages.last, stages.count > 2,
      stages.allSatisfy({ $0.stageCount == 1 }), source.name == "collection" || source.name == "collection_group",
      last.name == "aggregate", last.options.isEmpty,
      !last.readsVariables, last.arguments.count == 1 || last.arguments.dropFirst().first?.mapEntries?.isEmpty == true
    else { return nil }
    var kept = [source]
    var found: (path: String, variable: String)?
    for stage in stages.dropFirst().dropLast() {
      guard stage.name == "where" else { return nil }
      if !stage.readsVariables {
        kept.append(stage)
      } else if found == nil, let condition = equality(stage) {
        found = condition
      } else {
        return nil
      }
    }
    guard let found else { return nil }
    kept.append(
      PipelineCall("aggregate", [last.arguments[0], .entries([PipelineArgument.Entry(keyName, .field(found.path))])]))
    return (kept, found.variable)
  }

  private static func equality(_ stage: PipelineCall) -> (path: String, variable: String)? {
    guard stage.arguments.count == 1, case .function(let call) = stage.arguments[0], call.options.isEmpty,
      call.name == "equal" || call.name == "eq", call.arguments.count == 2
    else { return nil }
    switch (call.arguments[0], call.arguments[1]) {
    case (.field(let path), .variable(let name)), (.variable(let name), .field(let path)):
      guard let parsed = try? StageArguments.path(path),
        !parsed.segments.contains(where: { ResourceID.isReserved($0.utf8) })
      else { return nil }
      return (path, name)
    default: return nil
    }
  }
}
