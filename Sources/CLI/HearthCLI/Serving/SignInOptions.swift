import HearthServer
import IdentityService

/// The options of `hearth serve` for the sign-in pages of web apps.
enum SignInOptions {
  /// Applies the options to a configuration.
  /// - Throws: ``CommandFailure`` if an option has an invalid value or its file cannot be read.
  static func apply(_ arguments: Arguments, to configuration: inout HearthConfiguration) throws {
    if let url = arguments.value("public-url") {
      guard isURL(url) else {
        throw arguments.refusal(of: "public-url", url, "must be an http or https URL without a path")
      }
      configuration.publicURL = try KeyURL.checked(url)
    }
    guard let text = arguments.value("providers") else { return }
    // hearth.json contains the object itself.
    let isObject = text.utf8.first == UInt8(ascii: "{")
    configuration.accounts.signInProviders =
      isObject
      ? text
      : try ConfigurationFile.bytes(of: text, mustExist: true).map { String(decoding: $0, as: UTF8.self) }
    let authorities = DatabaseChoice.environment("HEARTH_CACERT")
    configuration.providerFetch = { try DocumentFetch.send($0, authoritiesFile: authorities) }
  }

  private static func isURL(_ text: String) -> Bool {
    let rest = text.hasPrefix("https://") ? text.dropFirst(8) : text.hasPrefix("http://") ? text.dropFirst(7) : ""
    let host = rest.hasSuffix("/") ? rest.dropLast() : rest
    return !host.isEmpty
      && host.utf8.allSatisfy { byte in
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._:[]".utf8.contains(byte)
      }
  }
}
