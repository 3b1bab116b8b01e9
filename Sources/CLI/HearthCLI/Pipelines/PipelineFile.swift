import DocumentModel
import FixtureTree
import WireFormat

/// Reads the file of `hearth query --pipeline`.
enum PipelineFile {
  /// The maximum size of the file, in bytes: that of a request.
  static let bytesMax = Limits.requestBytesMax

  /// Returns the pipeline in a file, or in standard input if the path is `-`. The text is in the notation of pipelines,
  /// or JSON: the body of an executePipeline request, a StructuredPipeline, a Pipeline, or an array of stages.
  /// - Throws: `FixtureTreeError` if the file cannot be read or the notation is malformed; ``CommandFailure`` if the
  ///   JSON is malformed.
  static func read(_ path: String, in database: DatabaseID) throws -> StructuredPipeline {
    let name = path == "-" ? "standard input" : path
    let bytes = try ByteSource(file: path).readAll(bytesMax: bytesMax)
    switch bytes.first(where: { $0 > 0x20 }) {
    case nil: throw CommandFailure.data("\(name) is empty; see `hearth help query` for an example")
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      do { return try JSONText.read(bytes) { try decode($0) } } catch let error as WireError {
        throw CommandFailure.data("\(name) is not a pipeline: \(error)")
      }
    default: return StructuredPipeline(try PipelineNotation.parse(bytes, file: name, in: database))
    }
  }

  private static func decode(_ root: JSONValue) throws -> StructuredPipeline {
    let decoder = JSONMessageDecoder()
    decoder.reset(.enterprise)
    if root.member("structuredPipeline") != nil || root.member("structured_pipeline") != nil {
      let request = try decoder.decode(root, ExecutePipelineRequest())
      guard request.consistency == .latest, request.newTransaction == nil else {
        throw CommandFailure.data("the request reads at another time or in a transaction; remove it, and use --at")
      }
      return request.pipeline
    }
    if root.member("pipeline") != nil { return try decoder.decode(root, StructuredPipelineMembers()) }
    if root.member("stages") != nil { return StructuredPipeline(try decoder.decode(root, PipelineMembers())) }
    guard case .array = root.kind else {
      throw CommandFailure.data(
        "the JSON is not a pipeline; give the body of a request, or an array of stages such as "
          + #"[{"name": "collection", "args": [{"referenceValue": "/users"}]}]"#)
    }
    return StructuredPipeline(
      try root.array.enumerated().map { index, stage in
        do { return try decoder.decode(stage, CallMembers()) } catch {
          throw CommandFailure.data("stage \(index + 1): \(error)")
        }
      })
  }
}
