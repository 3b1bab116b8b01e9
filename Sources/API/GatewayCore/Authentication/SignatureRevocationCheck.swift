import Accounts
import RulesEngine

/// Checks whether the key that signed a request was revoked since. Uploads that the request began check it.
final class SignatureRevocationCheck: TokenRevocationCheck {
  private let signature: ServiceKeySignature

  init(signature: ServiceKeySignature) { self.signature = signature }

  var revocationReason: String? { signature.isRevoked ? "its key was revoked" : nil }
  var keyID: String? { signature.keyID }
}
