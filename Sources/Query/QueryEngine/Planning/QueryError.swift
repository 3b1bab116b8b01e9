package import DocumentModel

/// The reason why a query is invalid. On the wire every case is INVALID_ARGUMENT, and ``description`` is the
/// documented text (firestore-api.md, sections 4.4 and 13).
package enum QueryError: Error, Equatable, Sendable, CustomStringConvertible {
  case negativeLimit
  case negativeOffset
  case emptyOperand(FieldOperator)
  case operandNotArray(FieldOperator)
  case tooManyOperands(FieldOperator, max: Int)
  case severalNegations
  case notInMixed
  case severalArrayContains
  case tooManyDisjunctions(Int)
  case tooManyInequalityFields(Int)
  case tooComplex(Int)
  case orderAfterName
  case nameEqualityBesideInequality
  case cursorTooLong
  case nameOperandNotReference
  case cursorNameNotReference
  case otherDatabase(String)
  case nearestLimit
  case nearestWithLimit
  case nearestWithOffset
  case nearestWithCursor
  case thresholdNotFinite
  case resultFieldReserved(String)
  case resultFieldTooLong

  package var description: String {
    switch self {
    case .negativeLimit: "limit is negative"
    case .negativeOffset: "offset is negative"
    case .operandNotArray(let op): "'\(op.wireName)' requires an ArrayValue."
    case .emptyOperand(let op): "'\(op.wireName)' requires an non-empty ArrayValue."
    case .tooManyOperands(let op, let max): "'\(op.wireName)' supports up to \(max) comparison values."
    case .severalNegations:
      "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."
    case .notInMixed: "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."
    case .severalArrayContains: "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction."
    case .tooManyDisjunctions(let count):
      "Too many disjunctions after normalization. Result had \(count) disjunctions "
        + "which is more than the maximum of \(QueryLimits.disjunctionsMax)"
    case .tooManyInequalityFields(let count):
      "The query has inequalities on \(count) fields; at most \(QueryLimits.inequalityFieldsMax) are allowed."
    case .tooComplex(let parts):
      "The query has \(parts) filters and orders; at most \(QueryLimits.partsMax) are allowed."
    case .nameEqualityBesideInequality:
      "Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities."
    case .orderAfterName: "order by clause cannot contain more fields after the key"
    case .cursorTooLong: "Cursor has too many values."
    case .nameOperandNotReference: "__key__ filter value must be a Key"
    case .cursorNameNotReference: "A cursor's value for __name__ must be a reference to a document."
    case .otherDatabase(let name): "The reference \(name) is in another database than the query."
    case .nearestLimit: "FindNearest.limit must be a positive integer of no more than \(Limits.nearestDocumentsMax)"
    case .nearestWithLimit: "A query limit cannot be used with FindNearest"
    case .nearestWithOffset: "A query offset cannot be used with FindNearest"
    case .nearestWithCursor: "A cursor cannot be used with FindNearest"
    case .thresholdNotFinite: "distanceThreshold must be a finite number."
    case .resultFieldReserved(let name): "The distanceResultField.property.name \"\(name)\" is reserved."
    case .resultFieldTooLong:
      "The distanceResultField.property.name is longer than \(Limits.fieldNameBytesMax) bytes."
    }
  }
}

/// The limits of a query (firestore-api.md, section 4.4).
package enum QueryLimits {
  /// The maximum number of alternatives after the filter is expanded.
  package static let disjunctionsMax = 30
  /// The maximum number of values of an IN or ARRAY_CONTAINS_ANY.
  package static let inOperandsMax = 30
  /// The maximum number of values of a NOT_IN.
  package static let notInOperandsMax = 10
  /// The maximum number of fields with inequalities.
  package static let inequalityFieldsMax = 10
  /// The maximum number of filters, orders and parent documents, summed over all alternatives.
  package static let partsMax = 100
  /// The maximum number of filters and orders as written. Repeated or contradictory ones do not count towards
  /// ``partsMax``, but finding them takes time.
  package static let writtenPartsMax = 500
}

extension FieldOperator {
  /// Whether the operator adds its field to the order (firestore-api.md, section 4.2).
  var isInequality: Bool {
    switch self {
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notIn: true
    default: false
    }
  }
}
