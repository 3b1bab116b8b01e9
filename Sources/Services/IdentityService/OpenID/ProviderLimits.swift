/// The limits of sign-in at other providers.
package enum ProviderLimits {
  /// The time from the start of a sign-in until the provider must have returned the user, in seconds. A later return
  /// gets an error page. Source: Hearth's own limit.
  package static let ticketSeconds: Int64 = 600
  /// The lifetime of the identity that a finished sign-in gives to the app, in seconds. Afterwards the app gets
  /// INVALID_IDP_RESPONSE. Source: Hearth's own limit.
  package static let identitySeconds: Int64 = 300
  /// The identities that wait for their app. Above it the oldest is dropped.
  package static let identitiesMax = 2000
  /// The remembered sign-ins that a provider has returned. Above it the oldest is forgotten; its code is still valid
  /// only once at the provider.
  package static let returnsMax = 10_000
  /// The longest parameter of a sign-in page, in bytes. A longer one gets an error page.
  package static let parameterBytesMax = 512
  /// The longest URL of an app's page, in bytes. A cookie contains it, and browsers keep cookies of 4 KiB.
  package static let pageURLBytesMax = 2000
  /// The largest token and the largest access token of a provider, in bytes.
  package static let tokenBytesMax = 16 << 10
  /// The shortest and the longest time for which discovery documents and keys are kept, in seconds.
  package static let documentSeconds = 300...86_400
  /// The time after a failed fetch of a document of a provider during which the server does not fetch it again, in
  /// seconds. Sign-ins with this provider fail at once meanwhile, unless an earlier document exists.
  package static let failureSeconds: Int64 = 15
  /// The documents of one provider that are fetched at the same time. Another sign-in gets an error, or uses an earlier
  /// document, so that a provider that does not respond leaves threads for the others.
  package static let fetchesMax = 2
  /// The shortest time between two fetches of the keys because a token names an unknown one, in seconds.
  package static let unknownKeySeconds: Int64 = 60
  /// The difference of clocks that is allowed in the times of a token, in seconds.
  package static let clockSkewSeconds: Int64 = 60
  /// The accounts that an emulator's sign-in page lists.
  package static let listedAccountsMax = 100
}
