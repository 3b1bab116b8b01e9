package import RulesEngine

/// The identity on whose behalf a request is made.
///
/// Only authentication creates callers, and code that acts on its own behalf, such as the server when it imports a
/// file. A handler receives its caller. Therefore this type has a module of its own, which the handlers do not import:
/// there neither of its cases compiles. They name the type and read its properties through `DatabaseService`.
package enum Caller: Sendable {
  /// An administrator. Security rules do not apply. The check reports whether the key of the administrator's token was
  /// revoked; `nil` if the token belongs to no key.
  case administrator(revocationCheck: (any TokenRevocationCheck)?)
  /// A user, subject to security rules; `nil` if unauthenticated.
  case user(RulesAuth?)

  /// An administrator without a key: the owner of an emulator, this process, or a process that may open the admin
  /// socket.
  package static let admin = Caller.administrator(revocationCheck: nil)
}
