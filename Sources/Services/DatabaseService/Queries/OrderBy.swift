package import DocumentModel

/// The text form of an order, such as `a desc, b.c, __name__ desc` (firestore-api.md, section 5.4).
package enum OrderBy {
  /// Parses the text and adds `__name__` at the end, in the direction of the last field, unless it is there.
  /// - Throws: `INVALID_ARGUMENT` with the documented text if the text is malformed or a field follows `__name__`.
  package static func parse(_ text: String) throws -> [Order] {
    var orders: [Order] = []
    for clause in split(text) {
      let words = splitWords(clause)
      guard let name = words.first, words.count <= 2 else { throw invalid(text) }
      var isDescending = false
      if words.count == 2 {
        switch words[1].lowercased() {
        case "asc": break
        case "desc": isDescending = true
        default: throw invalid(text)
        }
      }
      let path: FieldPath
      do throws(ModelError) { path = try FieldPath(name) } catch {
        if case .reservedFieldPath = error { throw error }
        throw invalid(text)
      }
      if orders.last?.path.isDocumentName == true {
        throw Status(.invalidArgument, "order by clause cannot contain more fields after the key")
      }
      if orders.contains(where: { $0.path == path }) {
        throw Status(.invalidArgument, "order by clause cannot contain duplicate fields \(path.text)")
      }
      guard orders.count < Limits.orderFieldsMax else {
        throw Status(.invalidArgument, "order by clause cannot contain more than \(Limits.orderFieldsMax) fields")
      }
      orders.append(Order(path, isDescending: isDescending))
    }
    if orders.last?.path.isDocumentName != true {
      orders.append(Order(FieldPath(field: "__name__"), isDescending: orders.last?.isDescending ?? false))
    }
    return orders
  }

  private static func invalid(_ text: String) -> Status {
    Status(.invalidArgument, "Invalid order by clause \"\(text)\".")
  }

  /// Splits at commas outside of backticks.
  private static func split(_ text: String) -> [String] { split(text) { $0 == "," } }

  private static func splitWords(_ text: String) -> [String] {
    split(text) { $0 == " " || $0 == "\t" }.filter { !$0.isEmpty }
  }

  private static func split(_ text: String, at isSeparator: (Unicode.Scalar) -> Bool) -> [String] {
    var parts: [String] = []
    var current = String.UnicodeScalarView()
    var isQuoted = false
    var isEscaped = false
    for scalar in text.unicodeScalars {
      if isEscaped {
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else if scalar == "`" {
        isQuoted.toggle()
      }
      if !isQuoted, isSeparator(scalar) {
        parts.append(String(current))
        current = String.UnicodeScalarView()
      } else {
        current.append(scalar)
      }
    }
    parts.append(String(current))
    return parts
  }
}
