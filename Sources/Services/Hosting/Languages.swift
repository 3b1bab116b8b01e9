/// The languages and the country of a request, for sites with translated content.
///
/// The languages are those of `Accept-Language`, and the country is that of `X-Country-Code`, which a proxy adds: the
/// server does not know where an address is. The cookies `firebase-language-override` and `firebase-country-override`
/// override them.
package struct Languages: Hashable, Sendable {
  /// Codes such as `fr` in lower case, the preferred one first.
  private(set) var codes: [String] = []
  /// A code such as `ca` in lower case, or `nil` if it is unknown.
  private(set) var country: String?

  /// The preferences of a request that has none.
  package static let none = Languages(acceptLanguage: nil, country: nil, cookie: nil)

  /// Reads the values of the header fields of a request.
  package init(acceptLanguage: String?, country: String?, cookie: String?) {
    if let chosen = Self.cookie("firebase-language-override", cookie) {
      for code in chosen.split(separator: ",") { add(code) }
    } else if let acceptLanguage {
      readAccepted(acceptLanguage)
    }
    self.country = Self.code(Self.cookie("firebase-country-override", cookie) ?? country ?? "")
  }

  private mutating func readAccepted(_ text: String) {
    var items: [(code: Substring, weight: Double)] = []
    for item in text.split(separator: ",").prefix(4 * HostingLimits.languagesMax) {
      let parts = item.split(separator: ";")
      var weight = 1.0
      for part in parts.dropFirst() {
        let part = part.drop { $0 == " " }
        if part.hasPrefix("q=") { weight = Double(part.dropFirst(2)) ?? 0 }
      }
      if let code = parts.first, weight > 0 { items.append((code, weight)) }
    }
    // The sort keeps the order of languages with the same weight.
    for item in items.enumerated().sorted(by: { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }) {
      add(item.element.code)
    }
  }

  private mutating func add(_ text: some StringProtocol) {
    guard codes.count < HostingLimits.languagesMax, let code = Self.code(text.prefix { $0 != "-" }),
      !codes.contains(code)
    else { return }
    codes.append(code)
  }

  /// Returns a code in lower case, or `nil` if the text is not one.
  private static func code(_ text: some StringProtocol) -> String? {
    let letters = String(text.filter { $0 != " " })
    guard (2...8).contains(letters.utf8.count), letters.utf8.allSatisfy({ ($0 | 0x20) &- 0x61 < 26 }) else {
      return nil
    }
    return letters.lowercased()
  }

  private static func cookie(_ name: String, _ header: String?) -> String? {
    for part in (header ?? "").split(separator: ";") {
      let part = part.drop { $0 == " " }
      if part.hasPrefix(name + "=") { return String(part.dropFirst(name.count + 1)) }
    }
    return nil
  }

  /// The folders of translated content that fit, the best one first: `fr_ca`, `ALL_ca`, `fr_ALL`, `fr`.
  var folders: [String] {
    var folders: [String] = []
    if let country {
      folders += codes.map { "\($0)_\(country)" }
      folders.append("ALL_\(country)")
    }
    for code in codes { folders += ["\(code)_ALL", code] }
    return folders
  }
}
