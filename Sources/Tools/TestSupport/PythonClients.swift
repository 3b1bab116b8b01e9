import Foundation
import Glibc

/// The Python installation with Google's client libraries, which `.ci/clients/install` creates.
package enum PythonClients {
  /// The interpreter: `HEARTH_PYTHON` in the environment, or the one of the virtual environment in `.build`.
  ///
  /// `nil` if neither exists; see ``Requirement/pythonClients``.
  package static let interpreter: String? = {
    if let chosen = ProcessInfo.processInfo.environment["HEARTH_PYTHON"] { return chosen }
    let folder = "\(GuidePage.root)/.build/clients"
    let path = "\(folder)/python/bin/python"
    // The stamp is written last. Without it, the installation is incomplete.
    return access(path, X_OK) == 0 && access("\(folder)/python.installed", R_OK) == 0 ? path : nil
  }()
}
