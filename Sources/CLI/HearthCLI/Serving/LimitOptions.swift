import DatabaseService
import HearthServer
import Transport

/// The options of `hearth serve` that limit callers, and that name the proxies which identify them.
enum LimitOptions {
  /// Sets the limits of a configuration.
  /// - Throws: ``CommandFailure`` if a value is invalid.
  static func apply(_ arguments: Arguments, to configuration: inout HearthConfiguration) throws {
    let range = 1...RateLimits.perMinuteMax
    configuration.rates = RequestRates(
      userRequests: try arguments.integer("user-requests", in: range),
      addressRequests: try arguments.integer("address-requests", in: range),
      userReads: try arguments.integer("user-reads", in: range),
      userWrites: try arguments.integer("user-writes", in: range))
    configuration.trustedProxies = arguments.values("trusted-proxy")
    var proxies = TrustedProxies()
    for text in configuration.trustedProxies where !proxies.add(text) {
      throw arguments.refusal(
        of: "trusted-proxy", text, "must be an address such as 10.0.0.7, or a network such as 10.0.0.0/8")
    }
  }
}
