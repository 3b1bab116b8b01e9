/// The numbers that tell whether two states of a database have a common history.
struct DatabaseLineage: Equatable, Sendable {
  /// See ``DocumentDatabase/incarnation``.
  var incarnation: UInt64
  /// The version at which the database was created or cleared.
  var created: Int64

  /// That of a store without a database.
  static let none = DatabaseLineage(incarnation: 0, created: 0)

  /// Whether there is no database.
  var isEmpty: Bool { self == .none }

  /// Whether the same database got another incarnation, and was not created or cleared.
  func isRenewal(of former: DatabaseLineage) -> Bool {
    !former.isEmpty && incarnation != former.incarnation && created == former.created
  }
}
