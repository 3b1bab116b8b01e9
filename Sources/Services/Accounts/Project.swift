/// The project of an account store. Its ID is part of the issuer and the audience of tokens.
package struct AccountsProject: Hashable, Sendable {
  package let id: String

  package init(_ id: String) { self.id = id }

  /// The project's number, which parts of the API use instead of its ID. It is derived from the ID.
  package var number: UInt64 {
    let hash = id.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
    return 100_000_000_000 + hash % 900_000_000_000
  }
}
