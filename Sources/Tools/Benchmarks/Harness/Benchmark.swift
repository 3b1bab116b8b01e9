/// A named measurement, run with peers on the same work.
struct Benchmark: Sendable {
  /// The name for `Benchmarks run NAME`.
  let name: String
  /// One line for `Benchmarks list`.
  let summary: String
  /// An explanation of the numbers, printed below the table.
  let meaning: String
  let run: @Sendable () throws -> ResultTable

  /// Every benchmark, in the order in which they run.
  static let all: [Benchmark] = [
    pointRead, grpcPointRead, durableCommit, commitLog, overload, cluster, takeovers, followers, importTree,
    startAndMemory, store,
    declaredIndexes, queries, queryPeers,
    pipelines, pipelineScan, vectorSearch, textSearch, rules, changeFeed, listeners, tokens, signInBurst, fork,
    fileDownload, fileUpload, smallFiles,
    hostedFiles,
  ]
}

/// A table of results, as Markdown that is also readable as plain text.
struct ResultTable {
  private let columns: [String]
  private var rows: [[String]] = []
  /// Lines printed below the table, such as skipped peers.
  var notes: [String] = []

  init(_ columns: String...) { self.columns = columns }

  mutating func add(_ cells: String...) { rows.append(cells) }

  /// The table as aligned Markdown.
  var markdown: String {
    let widths = columns.indices.map { column in ([columns] + rows).map { $0[column].count }.max() ?? 0 }
    func line(_ cells: [String]) -> String {
      let padded = cells.enumerated().map { column, cell in
        let blanks = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 ? cell + blanks : blanks + cell
      }
      return "| " + padded.joined(separator: " | ") + " |"
    }
    let rule = widths.enumerated().map { column, width in
      String(repeating: "-", count: column == 0 ? width : width - 1) + (column == 0 ? "" : ":")
    }
    return ([line(columns), "| " + rule.joined(separator: " | ") + " |"] + rows.map(line)).joined(separator: "\n")
      + (notes.isEmpty ? "" : "\n\n" + notes.map { "- \($0)" }.joined(separator: "\n"))
  }
}

/// Number formats for the tables.
enum Format {
  /// Returns a text such as `12,345`.
  static func count(_ value: Double) -> String {
    var digits = String(Int(value.rounded()))
    var index = digits.count - 3
    while index > 0 {
      digits.insert(",", at: digits.index(digits.startIndex, offsetBy: index))
      index -= 3
    }
    return digits
  }

  /// Returns a text with one decimal, such as `3.4`.
  static func tenths(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Returns a text with two decimals, such as `0.34`.
  static func hundredths(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    return "\(hundredths / 100).\(hundredths / 10 % 10)\(hundredths % 10)"
  }

  /// Returns a text such as `3.4 ×`, or a dash without a value to compare with.
  static func ratio(_ value: Double, to other: Double?) -> String {
    guard let other, other > 0 else { return "–" }
    let ratio = value / other
    guard ratio < 1 else { return "\(tenths(ratio)) ×" }
    let hundredths = Int((ratio * 100).rounded())
    return "\(hundredths / 100).\(hundredths / 10 % 10)\(hundredths % 10) ×"
  }
}
