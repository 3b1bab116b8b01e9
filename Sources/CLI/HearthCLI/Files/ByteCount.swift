/// Formats numbers of bytes.
enum ByteCount {
  private static let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Returns a size such as `512 B`, `1.5 KiB` or `20 MiB`, in units of 1024.
  static func text(_ bytes: Int) -> String {
    guard bytes >= 1024 else { return "\(bytes) B" }
    var unit = 0
    // Compute in tenths, so that rounding can carry into the next unit.
    var tenths = (Double(bytes) / 1024 * 10).rounded()
    while tenths >= 10_235, unit < units.count - 1 {
      tenths = (tenths / 1024).rounded()
      unit += 1
    }
    let whole = Int(tenths)
    let digits = whole < 1000 && whole % 10 != 0 ? "\(whole / 10).\(whole % 10)" : "\((whole + 5) / 10)"
    return "\(digits) \(units[unit])"
  }
}

extension ByteCount {
  /// Returns a number of files and their size, such as `1 file, 20 MiB`.
  static func text(ofFiles count: Int, _ bytes: Int) -> String {
    "\(CountText.of(count, "file")), \(text(bytes))"
  }
}
