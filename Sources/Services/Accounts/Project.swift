/// The project whose people these are: the part of a token's issuer and audience that names it.
package struct AccountsProject: Hashable, Sendable {
  /// Its id.
  package let id: String

  /// Names a project.
  package init(_ id: String) { self.id = id }
}
