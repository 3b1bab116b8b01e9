/// The reason why a client's name, path, field, value or request is invalid.
///
/// On the wire each case is an INVALID_ARGUMENT. ``description`` is the text that clients receive, which
/// firestore-api.md, section 13 documents for most cases.
package enum ModelError: Error, Equatable, Sendable {
  case emptyResourceID(path: String, index: Int)
  case dotResourceID(path: String, id: String, index: Int)
  case reservedResourceID(id: String, isCollection: Bool)
  case slashInCollectionID(String)
  case slashInResourceID(String)
  case resourceIDTooLong
  case documentNameTooLong
  case pathTooDeep
  case nameLacksSlash(name: String, index: Int, isParent: Bool)
  case nameLacksKeyword(name: String, keyword: String, index: Int, isParent: Bool)
  case invalidDatabaseID(String)
  case otherDatabase(requested: String, accessed: String)
  case emptyFieldPath
  case invalidFieldPath(String)
  case reservedFieldName(String)
  case reservedFieldPath(String)
  case nestedTransforms(String)
  case emptyTransformList
  case verifyWithoutPrecondition
  case emptyFieldName
  case fieldNameTooLong
  case nestedArray
  case unsetValue
  case unstorableValue
  case valueTooLong(field: String, bytesMax: Int)
  case tooDeep(field: String)
  case latitudeOutOfRange(Double)
  case longitudeOutOfRange(Double)
  case invalidUTF8(field: String)
  case timestampOutOfRange
  case timestampNotAligned
  case invalidReference(String)
  case invalidPageToken
  case invalidVector(String)
  case invalidBSON(BSONType, String)
  case invalidRegexOption(String)
  case documentNameSet
  case queryNotStructured
  case pipelineNotStructured
  case pipelineTooDeep
  case aggregationNotStructured
  case severalSelectors
  case emptyFilter
  case queryVectorNotVector
  case unknownDistanceMeasure
  case emptyAggregation
  case countLimitNotPositive
  case unsupportedCompositeOperator
  case unknownFieldOperator
  case unknownUnaryOperator
  case unknownDirection
  case emptyListenRequest
  case emptyTarget
  case emptyWrite
  case deleteWithMask
  case maskWithoutUpdate
  case transformsWithoutUpdate
  case emptyTransform
  case transformOperandNotNumeric
  case tooManyTransforms
  case documentTooLarge
  case tooManyIndexEntries
  case indexEntryTooLarge
  case textAnalysisUnavailable(String)
}

extension ModelError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .emptyResourceID(let path, let index):
      "Document name \"\(path)\" contains an empty resource id at index \(index)."
    case .dotResourceID(let path, let id, let index):
      "Document name \"\(path)\" contains a resource id \"\(id)\" at index \(index)."
    case .reservedResourceID(let id, let isCollection):
      "\(isCollection ? "Collection" : "Resource") id \"\(id)\" is invalid because it is reserved."
    case .slashInCollectionID(let id):
      "Collection id \"\(id)\" is invalid because it contains \"/\"."
    case .slashInResourceID(let id):
      "Resource id \"\(id)\" is invalid because it contains \"/\"."
    case .resourceIDTooLong:
      "The key path element name is longer than \(Limits.resourceIDBytesMax) bytes."
    case .documentNameTooLong:
      "The document name is longer than \(Limits.documentNameBytesMax) bytes."
    case .pathTooDeep:
      "The document name has more than \(Limits.collectionDepthMax) levels of collections."
    case .nameLacksSlash(let name, let index, let isParent):
      "Document \(isParent ? "parent name" : "name") \"\(name)\" lacks \"/\" at index \(index)."
    case .nameLacksKeyword(let name, let keyword, let index, let isParent):
      "Document \(isParent ? "parent name" : "name") \"\(name)\" lacks \"\(keyword)\" at index \(index)."
    case .invalidDatabaseID(let id):
      "Invalid project or database id \"\(id)\"."
    case .otherDatabase(let requested, let accessed):
      "The request was for database '\(requested)' but was attempting to access database '\(accessed)'"
    case .emptyFieldPath:
      "Invalid empty property path string."
    case .invalidFieldPath(let path):
      "Invalid property path \"\(path)\". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), "
        + "and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)"
    case .reservedFieldName(let name):
      "field name \(name) is reserved"
    case .reservedFieldPath(let path):
      "Invalid reserved name in field path \(path)"
    case .nestedTransforms(let path):
      "Cannot transform property \(path) and its nested property at the same time."
    case .verifyWithoutPrecondition:
      "a verify must contain a precondition"
    case .emptyTransformList:
      "The list of FieldTransform must not be empty."
    case .emptyFieldName:
      "The property.name is the empty string."
    case .fieldNameTooLong:
      "The property.name is longer than \(Limits.fieldNameBytesMax) bytes."
    case .nestedArray:
      "Nested arrays are not allowed"
    case .unsetValue:
      "Cannot convert firestore.v1.Value with type unset."
    case .unstorableValue:
      "Field references, variables, functions and pipelines are values only inside a pipeline."
    case .valueTooLong(let field, let bytesMax):
      "The value of property \"\(field)\" is longer than \(bytesMax) bytes."
    case .tooDeep(let field):
      "Property \(field) contains an invalid nested entity."
    case .latitudeOutOfRange(let degrees):
      "Geo point latitude '\(degrees)' outside permitted range -90.0 to 90.0."
    case .longitudeOutOfRange(let degrees):
      "Geo point longitude '\(degrees)' outside permitted range -180.0 to 180.0."
    case .invalidUTF8(let field):
      "The value of property \"\(field)\" is not valid UTF-8."
    case .timestampOutOfRange:
      "Timestamp seconds are outside 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z."
    case .timestampNotAligned:
      "Timestamp must be microsecond-aligned."
    case .invalidPageToken:
      "invalid page token"
    case .invalidReference(let name):
      "Reference \"\(name)\" is not a document name."
    case .invalidBSON(let type, let reason):
      "Invalid value of \(type.rawValue): \(reason)"
    case .invalidRegexOption(let options):
      "Invalid regex option in \"\(options)\"; the options are i, m, s, u and x."
    case .invalidVector(let reason):
      "Invalid vector value: \(reason)"
    case .documentNameSet:
      "document.name must not be set"
    case .queryNotStructured:
      "only structured queries are supported"
    case .pipelineNotStructured:
      "The request has no structured_pipeline."
    case .pipelineTooDeep:
      "The pipeline's values are nested more than \(Limits.pipelineNestingDepthMax) levels deep."
    case .aggregationNotStructured:
      "only structured aggregation queries are supported"
    case .severalSelectors:
      "StructuredQuery.from cannot have more than one collection selector."
    case .queryVectorNotVector:
      "Query Value must be of type vector."
    case .unknownDistanceMeasure:
      "Unknown Distance Measure."
    case .emptyAggregation:
      "An aggregation must have an operator."
    case .countLimitNotPositive:
      "up_to must be greater than zero."
    case .emptyFilter:
      "A filter must have a filter_type."
    case .unsupportedCompositeOperator:
      "Unsupported CompositeFilter operator."
    case .unknownFieldOperator:
      "Unknown FieldFilter operator."
    case .unknownUnaryOperator:
      "Unknown UnaryFilter operator."
    case .unknownDirection:
      "Unrecognized ordering."
    case .emptyListenRequest:
      "The request neither adds nor removes a target."
    case .emptyTarget:
      "A target must have a structured query, or name documents."
    case .emptyWrite:
      "empty write operation"
    case .deleteWithMask:
      "a delete must not specify a document mask."
    case .maskWithoutUpdate:
      "only an update may specify a document mask."
    case .transformsWithoutUpdate:
      "a delete must not specify a update transform."
    case .emptyTransform:
      "Operation type must be specified for field transformation."
    case .transformOperandNotNumeric:
      "Input must be int64 or double."
    case .tooManyTransforms:
      "cannot have more than \(Limits.transformsPerDocumentMax) field transforms on a single document"
    case .documentTooLarge:
      "A document cannot be written because it exceeds the maximum size allowed."
    case .tooManyIndexEntries:
      "too many index entries for entity: more than \(Limits.indexEntriesMax)"
    case .indexEntryTooLarge:
      "index entry too large: the indexed values of a document take more than 7.5 KiB in one index"
    case .textAnalysisUnavailable(let reason):
      "The text index of the collection cannot be updated: \(reason). Install it on the server, and start it again."
    }
  }
}
