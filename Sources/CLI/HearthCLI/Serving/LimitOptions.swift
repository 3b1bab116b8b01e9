import Basics
import DatabaseService
import HearthServer
import Transport

/// The options of `hearth serve` that limit callers, and that name the proxies which identify them.
enum LimitOptions {
  /// The options of `hearth serve`, and of a project's own file, that set quotas.
  static let quotas: [Command.Option] = [
    .value(
      Quota.Kind.documents.option, "BYTES",
      "the most bytes of documents of a project, such as 10G (default: any number)"),
    .value(
      Quota.Kind.files.option, "BYTES", "the most bytes of files of a project, such as 50G (default: any number)"),
    .value(Quota.Kind.accounts.option, "N", "the most accounts of a project (default: any number)"),
    .value(Quota.Kind.streams.option, "N", "the most streams of a project that are open (default: any number)"),
    .value(Quota.Kind.requests.option, "N", "the most requests to a project in a minute (default: any number)"),
  ]

  /// Returns the quotas that options set.
  /// - Throws: ``CommandFailure`` if a value is invalid.
  static func quotas(_ arguments: Arguments) throws -> QuotaLimits {
    var limits = QuotaLimits()
    for kind in Quota.Kind.allCases {
      limits[kind] =
        kind.isInBytes
        ? try arguments.bytes(kind.option, in: 1...QuotaLimits.max)
        : try arguments.integer(kind.option, in: 1...RateLimits.perMinuteMax)
    }
    return limits
  }

  /// Reads the quotas of the configuration file again.
  /// - Throws: `HearthError` if the file or a value is invalid.
  static func reloadedQuotas(_ arguments: Arguments) throws(HearthError) -> QuotaLimits {
    do {
      var arguments = arguments
      let settings = try ConfigurationFile.settings(for: .serve, arguments)
      for kind in Quota.Kind.allCases { arguments.readopt(kind.option, from: settings) }
      return try quotas(arguments)
    } catch { throw .configuration(CommandFailure(error).message) }
  }

  /// Sets the limits of a configuration.
  /// - Throws: ``CommandFailure`` if a value is invalid.
  static func apply(_ arguments: Arguments, to configuration: inout HearthConfiguration) throws {
    let range = 1...RateLimits.perMinuteMax
    configuration.rates = RequestRates(
      userRequests: try arguments.integer("user-requests", in: range),
      addressRequests: try arguments.integer("address-requests", in: range),
      userReads: try arguments.integer("user-reads", in: range),
      userWrites: try arguments.integer("user-writes", in: range))
    configuration.quotas = try quotas(arguments)
    configuration.trustedProxies = arguments.values("trusted-proxy")
    var proxies = TrustedProxies()
    for text in configuration.trustedProxies where !proxies.add(text) {
      throw arguments.refusal(
        of: "trusted-proxy", text, "must be an address such as 10.0.0.7, or a network such as 10.0.0.0/8")
    }
  }
}
