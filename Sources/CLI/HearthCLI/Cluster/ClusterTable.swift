/// The tables that the verbs of `hearth cluster` print.
enum ClusterTable {
  /// Returns rows with columns of equal width, the first one in bold. Cost: linear.
  static func text(_ rows: [[String]], on terminal: Terminal) -> String {
    guard let head = rows.first else { return "" }
    let widths = head.indices.map { column in rows.map { TextWidth.of($0[column]) }.max() ?? 0 }
    var text = ""
    for (number, row) in rows.enumerated() {
      var line = ""
      for (cell, width) in zip(row, widths) {
        line += cell + String(repeating: " ", count: width - TextWidth.of(cell) + 2)
      }
      while line.last == " " { line.removeLast() }
      text += (number == 0 ? terminal.bold(line) : line) + "\n"
    }
    return text
  }
}
