/// Whether a request may be sent again if its response was lost.
package enum RequestRepetition: Sendable {
  /// Never: it could have its effect twice, and the server could not know.
  case never
  /// With the same id, which lets it have its effect once.
  case withID
  /// Always: it has no effect, or a second one leaves the same state, or only a spare token.
  case always
}
