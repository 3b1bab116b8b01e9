package import DocumentModel

/// The members of a `google.firestore.v1.Value` in a pipeline, where it can contain expressions.
///
/// Values that can be stored are checked by the same rules as in documents, except that arrays may contain arrays and
/// references need not name a document: the sources of a pipeline name collections by `/path`.
struct PipelineArgumentMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Value"
  static let nullMember: StaticString? = "null_value"
  /// The number of values around this one.
  private let depth: Int
  private var argument: PipelineArgument?

  init(depth: Int = 0) { self.depth = depth }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if let value = try scalar(&field) {
      try set(.constant(value), field)
    } else if field.matches(6, "map_value") {
      try set(.entries(try field.message(Entries(depth: try nested()))), field)
    } else if field.matches(9, "array_value") {
      try set(.elements(try field.message(Elements(depth: try nested()))), field)
    } else if field.matches(19, "field_reference_value") {
      try set(.field(try field.string()), field)
    } else if field.matches(20, "function_value") {
      try set(.function(try field.message(CallMembers(depth: try nested()))), field)
    } else if field.matches(21, "pipeline_value") {
      try set(.pipeline(try field.message(PipelineMembers(depth: try nested()))), field)
    } else if field.matches(22, "variable_reference_value") {
      try set(.variable(try field.string()), field)
    }
  }

  private func scalar(_ field: inout some MessageField) throws(WireError) -> Value? {
    if field.matches(17, "string_value") { return .string(try field.string()) }
    if field.matches(2, "integer_value", .varint) { return .integer(try field.int64()) }
    if field.matches(3, "double_value", .fixed64) { return .double(try field.double()) }
    if field.matches(1, "boolean_value", .varint) { return .boolean(try field.bool()) }
    if field.matches(11, "null_value", .varint) {
      try field.null()
      return .null
    }
    if field.matches(10, "timestamp_value") { return .timestamp(try field.timestamp()) }
    if field.matches(5, "reference_value") { return .reference(try field.string()) }
    if field.matches(18, "bytes_value") { return .bytes(try field.bytes()) }
    if field.matches(8, "geo_point_value") { return .geoPoint(try field.message(Coordinates())) }
    return nil
  }

  private mutating func set(_ value: PipelineArgument, _ field: some MessageField) throws(WireError) {
    try field.claim("value_type", isSet: argument != nil)
    argument = value
  }

  private func nested() throws(WireError) -> Int {
    guard depth < Limits.pipelineNestingDepthMax else { throw .model(.pipelineTooDeep) }
    return depth + 1
  }

  func decoded() throws(WireError) -> PipelineArgument {
    guard let argument else { throw .model(.unsetValue) }
    return argument
  }

  private struct Elements: DecodableMessage {
    static let typeName: StaticString = "google.firestore.v1.ArrayValue"
    let depth: Int
    private var elements: [PipelineArgument] = []

    init(depth: Int) { self.depth = depth }

    mutating func decode(_ field: inout some MessageField) throws(WireError) {
      if field.matches(1, "values") { try field.append(PipelineArgumentMembers(depth: depth), to: &elements) }
    }

    func decoded() throws(WireError) -> [PipelineArgument] { elements }
  }

  private struct Entries: DecodableMessage {
    static let typeName: StaticString = "google.firestore.v1.MapValue"
    let depth: Int
    private var entries: [PipelineArgument.Entry] = []

    init(depth: Int) { self.depth = depth }

    mutating func decode(_ field: inout some MessageField) throws(WireError) {
      if field.matches(1, "fields") { try field.append(to: &entries, depth: depth) }
    }

    func decoded() throws(WireError) -> [PipelineArgument.Entry] { entries }
  }

  /// The members of a `google.type.LatLng`.
  private struct Coordinates: DecodableMessage {
    static let typeName: StaticString = "google.type.LatLng"
    private var point = GeoPoint(latitude: 0, longitude: 0)

    mutating func decode(_ field: inout some MessageField) throws(WireError) {
      if field.matches(1, "latitude", .fixed64) {
        point.latitude = try field.double()
      } else if field.matches(2, "longitude", .fixed64) {
        point.longitude = try field.double()
      }
    }

    func decoded() throws(WireError) -> GeoPoint {
      guard (-90.0...90.0).contains(point.latitude) else { throw .model(.latitudeOutOfRange(point.latitude)) }
      guard (-180.0...180.0).contains(point.longitude) else { throw .model(.longitudeOutOfRange(point.longitude)) }
      return point
    }
  }
}

/// The members of a `google.firestore.v1.Pipeline.Stage` or a `google.firestore.v1.Function`, which are the same.
package struct CallMembers: DecodableMessage {
  package static let typeName: StaticString = "google.firestore.v1.Pipeline.Stage"
  private let depth: Int
  private var call = PipelineCall("")

  /// Creates an empty message inside `depth` values.
  package init(depth: Int = 0) { self.depth = depth }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "name") {
      call.name = try field.string()
    } else if field.matches(2, "args") {
      try field.append(PipelineArgumentMembers(depth: depth), to: &call.arguments)
    } else if field.matches(3, "options") {
      try field.append(to: &call.options, depth: depth)
    }
  }

  package func decoded() throws(WireError) -> PipelineCall { call }
}

/// The members of a `google.firestore.v1.Pipeline`.
package struct PipelineMembers: DecodableMessage {
  package static let typeName: StaticString = "google.firestore.v1.Pipeline"
  private let depth: Int
  private var stages: [PipelineCall] = []

  /// Creates an empty message inside `depth` values.
  package init(depth: Int = 0) { self.depth = depth }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "stages") { try field.append(CallMembers(depth: depth), to: &stages) }
  }

  package func decoded() throws(WireError) -> [PipelineCall] { stages }
}

/// The members of a `google.firestore.v1.StructuredPipeline`.
package struct StructuredPipelineMembers: DecodableMessage {
  package static let typeName: StaticString = "google.firestore.v1.StructuredPipeline"
  private var pipeline = StructuredPipeline([])

  /// Creates a pipeline without stages.
  package init() {}

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "pipeline") {
      pipeline.stages = try field.message(PipelineMembers())
    } else if field.matches(2, "options") {
      try field.append(to: &pipeline.options, depth: 0)
    }
  }

  package func decoded() throws(WireError) -> StructuredPipeline { pipeline }
}

extension MessageField {
  /// Appends the entries of a `map<string, Value>`.
  func append(to entries: inout [PipelineArgument.Entry], depth: Int) throws(WireError) {
    if !addsElements { entries.removeAll() }
    try forEachEntry { (key, value) throws(WireError) in
      entries.append(PipelineArgument.Entry(key, try value.message(PipelineArgumentMembers(depth: depth))))
    }
  }
}
