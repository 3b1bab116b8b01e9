import Callers
import DatabaseService
import DocumentModel
import TestSupport
import WireFormat

/// Parts of pipelines.
extension PipelineArgument {
  static func text(_ text: String) -> PipelineArgument { .constant(.string(text)) }
  static func int(_ number: Int) -> PipelineArgument { .constant(.integer(Int64(number))) }
  static func call(_ name: String, _ arguments: PipelineArgument...) -> PipelineArgument {
    .function(PipelineCall(name, arguments))
  }
  static func path(_ path: String) -> PipelineArgument { .constant(.reference(path)) }
}

extension PipelineCall {
  static func collection(_ path: String) -> PipelineCall { PipelineCall("collection", [.path("/" + path)]) }
  static func matching(_ condition: PipelineArgument) -> PipelineCall { PipelineCall("where", [condition]) }
}

extension ServiceFixture {
  /// Returns the paths of the documents in a pipeline's results, or `-` for a row without a name.
  func paths(
    of stages: [PipelineCall], as caller: Caller = admin, options: [PipelineArgument.Entry] = [],
    change: (inout ExecutePipelineRequest) -> Void = { _ in }
  ) throws -> [String] {
    var request = ExecutePipelineRequest(StructuredPipeline(stages, options: options))
    change(&request)
    let cursor = try service.executePipeline(request, in: id, as: caller)
    let root = id.documentsRoot.utf8.count + 1
    var paths: [String] = []
    while !cursor.isAtEnd {
      try cursor.slice { row in
        paths.append(row.name.map { String(decoding: $0.dropFirst(root), as: UTF8.self) } ?? "-")
        return true
      }
    }
    return paths
  }
}
