package import DocumentModel

/// Writes pipelines as the API's JSON.
package enum PipelineJSON {
  /// Returns the body of an executePipeline request.
  /// - Throws: ``WireError`` if a constant cannot be written.
  package static func body(_ pipeline: StructuredPipeline, at readTime: Timestamp? = nil) throws(WireError) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("structuredPipeline")
    json.beginObject()
    json.key("pipeline")
    try append(pipeline.stages, to: &json)
    if !pipeline.options.isEmpty {
      json.key("options")
      try append(pipeline.options, to: &json)
    }
    json.endObject()
    if let readTime {
      json.key("readTime")
      json.timestamp(readTime)
    }
    json.endObject()
    return json.bytes
  }

  private static func append(_ stages: [PipelineCall], to json: inout JSONWriter) throws(WireError) {
    json.beginObject()
    json.key("stages")
    json.beginArray()
    for stage in stages { try append(stage, to: &json) }
    json.endArray()
    json.endObject()
  }

  private static func append(_ call: PipelineCall, to json: inout JSONWriter) throws(WireError) {
    json.beginObject()
    json.key("name")
    json.string(call.name)
    json.key("args")
    json.beginArray()
    for argument in call.arguments { try append(argument, to: &json) }
    json.endArray()
    if !call.options.isEmpty {
      json.key("options")
      try append(call.options, to: &json)
    }
    json.endObject()
  }

  private static func append(
    _ entries: [PipelineArgument.Entry], to json: inout JSONWriter
  ) throws(WireError) {
    json.beginObject()
    for entry in entries {
      Array(entry.key.utf8).withUnsafeBytes { json.key($0) }
      try append(entry.value, to: &json)
    }
    json.endObject()
  }

  private static func append(_ argument: PipelineArgument, to json: inout JSONWriter) throws(WireError) {
    if let value = argument.constant { return try DocumentJSON.append(value, to: &json) }
    json.beginObject()
    switch argument {
    case .constant: break
    case .array(let elements):
      json.key("arrayValue")
      json.beginObject()
      json.key("values")
      json.beginArray()
      for element in elements { try append(element, to: &json) }
      json.endArray()
      json.endObject()
    case .map(let entries):
      json.key("mapValue")
      json.beginObject()
      json.key("fields")
      try append(entries, to: &json)
      json.endObject()
    case .field(let path):
      json.key("fieldReferenceValue")
      json.string(path)
    case .variable(let name):
      json.key("variableReferenceValue")
      json.string(name)
    case .function(let call):
      json.key("functionValue")
      try append(call, to: &json)
    case .pipeline(let stages):
      json.key("pipelineValue")
      try append(stages, to: &json)
    }
    json.endObject()
  }
}
