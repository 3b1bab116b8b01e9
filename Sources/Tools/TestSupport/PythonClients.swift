import Foundation
import Glibc

/// The Python that has Google's client libraries: what `.ci/clients/install` makes.
package enum PythonClients {
  /// The interpreter: `HEARTH_PYTHON` in the environment, or the one of the virtual environment in `.build`.
  ///
  /// `nil` where neither exists; tests that need it are skipped then, with ``reasonForSkipping``.
  package static let interpreter: String? = {
    if let chosen = ProcessInfo.processInfo.environment["HEARTH_PYTHON"] { return chosen }
    let folder = "\(GuidePage.root)/.build/clients"
    let path = "\(folder)/python/bin/python"
    // The stamp is written last: without it the installation is not whole.
    return access(path, X_OK) == 0 && access("\(folder)/python.installed", R_OK) == 0 ? path : nil
  }()

  package static let reasonForSkipping =
    "Google's Python clients are not here: .ci/clients/install makes them, or says why it cannot"
}
