/// The project of an account store. Its ID is part of the issuer and the audience of tokens.
package struct AccountsProject: Hashable, Sendable {
  package let id: String

  package init(_ id: String) { self.id = id }
}
