/// A writer of Prometheus's text format, version 0.0.4.
struct MetricsText {
  /// The type of a family of samples.
  enum Kind: String { case counter, gauge, histogram }

  typealias Label = (name: StaticString, value: String)

  private(set) var bytes: [UInt8] = []
  private var name = ""

  /// Begins a family. `help` is one line without backslashes.
  mutating func family(_ name: String, _ kind: Kind, _ help: StaticString) {
    self.name = name
    append("# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n")
  }

  /// Appends a sample of the current family.
  mutating func sample(_ labels: [Label] = [], _ value: Int, suffix: StaticString = "") {
    head(labels, suffix)
    append(" \(value)\n")
  }

  /// Appends a sample with a fraction, such as seconds.
  mutating func sample(_ labels: [Label] = [], _ value: Double, suffix: StaticString = "") {
    head(labels, suffix)
    append(" \(Self.text(value))\n")
  }

  /// Appends the samples of a histogram. `counts` has one number for each class between `bounds`, and one for the
  /// values above the last bound.
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

  /// The shortest text that parses to the same number, without a fraction if the number is whole.
  static func text(_ value: Double) -> String {
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if value.isNaN { return "NaN" }
    if value == value.rounded(), abs(value) < 1e15 { return String(Int(value)) }
    return "\(value)"
  }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
