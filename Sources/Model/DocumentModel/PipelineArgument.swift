/// An argument of a stage or function of a pipeline: a `Value` message that may contain expressions.
package indirect enum PipelineArgument: Hashable, Sendable {
  /// A member of a map, or an option of a stage or function.
  package struct Entry: Hashable, Sendable {
    package var key: String
    package var value: PipelineArgument

    package init(_ key: String, _ value: PipelineArgument) {
      self.key = key
      self.value = value
    }
  }

  /// A value without expressions inside.
  case constant(Value)
  /// An array with at least one expression inside.
  case array([PipelineArgument])
  /// A map with at least one expression inside. Keys do not repeat.
  case map([Entry])
  /// A field path as text, relative to the row.
  case field(String)
  /// The name of a variable.
  case variable(String)
  case function(PipelineCall)
  /// The stages of a nested pipeline.
  case pipeline([PipelineCall])

  /// Returns an array. It is a constant if all elements are.
  package static func elements(_ elements: [PipelineArgument]) -> PipelineArgument {
    let constants = elements.compactMap(\.constant)
    return constants.count == elements.count ? .constant(.array(constants)) : .array(elements)
  }

  /// Returns a map. It is a constant if all values are. Of entries with the same key the last one is kept.
  package static func entries(_ entries: [Entry]) -> PipelineArgument {
    let constants = entries.compactMap { entry in entry.value.constant.map { (entry.key, $0) } }
    if constants.count == entries.count { return .constant(.map(MapValue(constants))) }
    var places: [String: Int] = [:]
    var kept: [Entry] = []
    for entry in entries {
      if let place = places[entry.key] {
        kept[place] = entry
      } else {
        places[entry.key] = kept.count
        kept.append(entry)
      }
    }
    return .map(kept)
  }

  /// The value, or `nil` if the argument contains expressions.
  package var constant: Value? { if case .constant(let value) = self { value } else { nil } }

  /// The members of a map, whether constant or not; `nil` if the argument is something else.
  package var mapEntries: [Entry]? {
    switch self {
    case .constant(.map(let map)): map.entries.map { Entry($0.key, .constant($0.value)) }
    case .map(let entries): entries
    default: nil
    }
  }

  /// The name of the argument's member of `Value.value_type`, in the form of error texts.
  package var kindName: String {
    switch self {
    case .constant(let value):
      switch value {
      case .null: "NULL_VALUE"
      case .boolean: "BOOLEAN_VALUE"
      case .integer: "INTEGER_VALUE"
      case .double: "DOUBLE_VALUE"
      case .timestamp: "TIMESTAMP_VALUE"
      case .string: "STRING_VALUE"
      case .bytes: "BYTES_VALUE"
      case .reference: "REFERENCE_VALUE"
      case .geoPoint: "GEO_POINT_VALUE"
      case .array: "ARRAY_VALUE"
      case .map: "MAP_VALUE"
      }
    case .array: "ARRAY_VALUE"
    case .map: "MAP_VALUE"
    case .field: "FIELD_REFERENCE_VALUE"
    case .variable: "VARIABLE_REFERENCE_VALUE"
    case .function: "FUNCTION_VALUE"
    case .pipeline: "PIPELINE_VALUE"
    }
  }
}

/// A stage of a pipeline, or a function of an expression: a name, arguments and options.
package struct PipelineCall: Hashable, Sendable {
  package var name: String
  package var arguments: [PipelineArgument]
  package var options: [PipelineArgument.Entry]

  package init(_ name: String, _ arguments: [PipelineArgument] = [], options: [PipelineArgument.Entry] = []) {
    self.name = name
    self.arguments = arguments
    self.options = options
  }
}

/// A pipeline as the client sent it (`StructuredPipeline`). It is not checked.
package struct StructuredPipeline: Hashable, Sendable {
  package var stages: [PipelineCall]
  package var options: [PipelineArgument.Entry]

  package init(_ stages: [PipelineCall], options: [PipelineArgument.Entry] = []) {
    self.stages = stages
    self.options = options
  }
}
