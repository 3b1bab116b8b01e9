import Foundation
import Glibc

/// The Python installations that `.ci/clients/install` creates.
package enum PythonClients {
  /// The interpreter with Google's client libraries: `HEARTH_PYTHON` in the environment, or the one of the virtual
  /// environment in `.build`.
  ///
  /// `nil` if neither exists; see ``Requirement/pythonClients``.
  package static let interpreter = ProcessInfo.processInfo.environment["HEARTH_PYTHON"] ?? interpreter(of: "python")

  /// The interpreter with a store that has the API of Amazon S3, or `nil`; see ``Requirement/s3Store``.
  static let storeInterpreter = interpreter(of: "s3")

  private static func interpreter(of environment: String) -> String? {
    let folder = "\(GuidePage.root)/.build/clients"
    let path = "\(folder)/\(environment)/bin/python"
    // The stamp is written last. Without it, the installation is incomplete.
    return access(path, X_OK) == 0 && access("\(folder)/\(environment).installed", R_OK) == 0 ? path : nil
  }
}
