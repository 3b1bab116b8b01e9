import RulesEngine

extension Coverage {
  /// The coverage in lcov format: functions, lines, and `allow` statements as branches that allowed and denied.
  package var lcov: String {
    var text = "TN:\nSF:\(file)\n"
    let functions = outline.functions.compactMap { function in
      function.expressions.last.map { (name: function.name, result: $0) }
    }
    for (name, result) in functions { text += "FN:\(ruleset.source.line(of: result.range.lowerBound)),\(name)\n" }
    for (name, result) in functions { text += "FNDA:\(hits(of: result)),\(name)\n" }
    text += "FNF:\(functions.count)\nFNH:\(functions.count { hits(of: $0.result) > 0 })\n"
    var branches: [Int] = []
    for (number, allow) in outline.allows.enumerated() {
      let outcomes = outcomes(of: allow)
      let granted = outcomes.first { $0.value == "true" }?.count ?? 0
      let refused = outcomes.reduce(0) { $0 + $1.count } - granted
      // A statement that always allows has only one branch.
      let counts = allow.condition == nil ? [granted] : [granted, refused]
      for (branch, count) in counts.enumerated() {
        text += "BRDA:\(allow.line),\(number),\(branch),\(outcomes.isEmpty ? "-" : String(count))\n"
      }
      branches += counts
    }
    text += "BRF:\(branches.count)\nBRH:\(branches.count { $0 > 0 })\n"
    let lines = lines
    for (line, hits) in lines { text += "DA:\(line),\(hits)\n" }
    return text + "LF:\(lines.count)\nLH:\(lines.count { $0.hits > 0 })\nend_of_record\n"
  }

  /// The rules as a section of a web page. Each expression shows its values and their counts.
  var htmlSection: String {
    let lines = lines
    let hits = Dictionary(uniqueKeysWithValues: lines.map { ($0.line, $0.hits) })
    let reached = lines.count { $0.hits > 0 }
    var text = "<h2>\(HTMLText.escaped(file))</h2>\n"
    text += "<p>\(reached) of \(lines.count) lines with conditions evaluated</p>\n"
    text += "<table>\n"
    let marks = marks
    var next = 0
    var open: [Mark] = []
    for line in 1...max(1, ruleset.source.lineCount) {
      let count = hits[line]
      let kind = count.map { $0 > 0 ? "hit" : "missed" } ?? "none"
      text += "<tr class=\"\(kind)\"><td>\(line)</td><td>\(count.map(String.init) ?? "")</td><td><pre>"
      // A mark that spans several lines is closed and reopened at each line.
      for mark in open { text += mark.start }
      let range = ruleset.source.range(ofLine: line)
      var place = range.lowerBound
      while place < range.upperBound || (place == range.upperBound && open.last?.range.upperBound == place) {
        if let last = open.last, last.range.upperBound <= place {
          text += "</span>"
          open.removeLast()
        } else if next < marks.count, marks[next].range.lowerBound <= place {
          open.append(marks[next])
          text += marks[next].start
          next += 1
        } else {
          let mark = next < marks.count ? marks[next].range.lowerBound : nil
          let stops = [range.upperBound, open.last?.range.upperBound, mark]
          let end = max(place + 1, stops.compactMap(\.self).min() ?? range.upperBound)
          text += HTMLText.escaped(ruleset.source.text(place..<end))
          place = end
        }
      }
      text += String(repeating: "</span>", count: open.count) + "</pre></td></tr>\n"
    }
    return text + "</table>\n"
  }

  /// A range of the text and the start tag of its span.
  private struct Mark {
    let range: Range<Int>
    let start: String
  }

  /// The marks of all expressions except literals, in the order of the text. A mark precedes those inside it.
  private var marks: [Mark] {
    var marks: [Mark] = []
    func note(_ place: RulesetOutline.Place, inside range: Range<Int>) {
      let inner = place.extent.clamped(to: range)
      if !place.isLiteral, !inner.isEmpty {
        let values = values(of: place)
        let kind = values.isEmpty ? "unseen" : "seen"
        let title = values.isEmpty ? "never evaluated" : values.map(Self.text).joined(separator: "\n")
        marks.append(
          Mark(range: inner, start: "<span class=\"\(kind)\" title=\"\(HTMLText.escaped(title))\">"))
      }
      // Siblings do not overlap, so the spans nest.
      for child in place.children { note(child, inside: inner) }
    }
    for allow in outline.allows {
      if let condition = allow.condition { note(condition, inside: condition.extent) }
    }
    for function in outline.functions {
      for place in function.expressions { note(place, inside: place.extent) }
    }
    return marks.sorted { a, b in
      a.range.lowerBound != b.range.lowerBound
        ? a.range.lowerBound < b.range.lowerBound : a.range.upperBound > b.range.upperBound
    }
  }

  private static func text(_ count: Count) -> String {
    "\(count.value.isEmpty ? "other values" : ValueDisplay.text(count.value)) × \(count.count)"
  }

  /// Returns a web page with the coverage of several files. It loads no other resources.
  package static func html(_ coverages: [Coverage]) -> String {
    """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8"><title>Coverage of security rules</title>
    <style>
    body { font-family: sans-serif; margin: 2em; }
    table { border-collapse: collapse; }
    td { padding: 0 .6em; vertical-align: top; } td:nth-child(-n+2) { text-align: right; color: #777; }
    pre { margin: 0; } tr.missed { background: #fdd; } tr.hit { background: #efe; }
    span.unseen { background: #fbb; } span.seen:hover { background: #bdf; }
    </style></head><body>
    <h1>Coverage of security rules</h1>
    <p>Hover over an expression to see its values and their counts. Red expressions were never evaluated.</p>

    """ + coverages.map(\.htmlSection).joined() + "</body></html>\n"
  }
}

/// Escapes text for HTML and XML.
enum HTMLText {
  /// Returns the text with the five special characters escaped, and without characters that XML does not allow.
  static func escaped(_ text: String) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": out += "&amp;"
      case "<": out += "&lt;"
      case ">": out += "&gt;"
      case "\"": out += "&quot;"
      case "'": out += "&#39;"
      case "\n": out += "&#10;"
      case "\t": out.unicodeScalars.append(scalar)
      case "\u{0}"..<"\u{20}", "\u{FFFE}", "\u{FFFF}": out += "\u{FFFD}"
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
