/// Writes the text format of Prometheus, version 0.0.4.
struct MetricsText {
  /// What a family of samples is.
  enum Kind: String { case counter, gauge, histogram }

  /// A label and its value.
  typealias Label = (name: StaticString, value: String)

  private(set) var bytes: [UInt8] = []
  private var name = ""

  /// Begins a family; its samples follow. `help` is one line without backslashes.
  mutating func family(_ name: String, _ kind: Kind, _ help: StaticString) {
    self.name = name
    append("# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n")
  }

  /// Adds a sample of the family that was begun last.
  mutating func sample(_ labels: [Label] = [], _ value: Int, suffix: StaticString = "") {
    head(labels, suffix)
    append(" \(value)\n")
  }

  /// Adds a sample with a fraction, such as seconds.
  mutating func sample(_ labels: [Label] = [], _ value: Double, suffix: StaticString = "") {
    head(labels, suffix)
    append(" \(Self.text(value))\n")
  }

  /// Adds the samples of a histogram: `counts` has a number for each class between `bounds`, and one for what is above
  /// all.
  mutating func histogram(_ labels: [Label] = [], bounds: [Double], counts: some Collection<Int>, sum: Double) {
    var total = 0
    for (index, count) in counts.enumerated() {
      total += count
      let bound = index < bounds.count ? Self.text(bounds[index]) : "+Inf"
      sample(labels + [("le", bound)], total, suffix: "_bucket")
    }
    sample(labels, sum, suffix: "_sum")
    sample(labels, total, suffix: "_count")
  }

  private mutating func head(_ labels: [Label], _ suffix: StaticString) {
    append(name)
    append("\(suffix)")
    guard !labels.isEmpty else { return }
    for (index, label) in labels.enumerated() {
      append("\(index == 0 ? "{" : ",")\(label.name)=\"")
      for byte in label.value.utf8 {
        switch byte {
        case UInt8(ascii: "\\"): append(#"\\"#)
        case UInt8(ascii: "\""): append(#"\""#)
        case UInt8(ascii: "\n"): append(#"\n"#)
        default: bytes.append(byte)
        }
      }
      append("\"")
    }
    append("}")
  }

  /// The shortest text that reads back the same, without a fraction where there is none.
  static func text(_ value: Double) -> String {
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if value.isNaN { return "NaN" }
    if value == value.rounded(), abs(value) < 1e15 { return String(Int(value)) }
    return "\(value)"
  }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
