/// A store with the API of Amazon S3 on a loopback port: moto, which is not a part of Hearth. It checks signatures, and
/// has one bucket, in memory.
package struct S3Store: Sendable {
  private let process: ServerProcess
  /// The URL without a path.
  package let url: String
  package let region = "eu-central-1"
  package let bucket: String
  package let accessKeyID: String
  package let secretAccessKey: String

  /// Starts the store and waits until it responds. See ``Requirement/s3Store``.
  /// - Throws: ``ServerProcessError`` if it does not start.
  package init() throws {
    guard let interpreter = PythonClients.storeInterpreter else {
      throw ServerProcessError(description: Requirement.s3Store.reason)
    }
    process = try ServerProcess(
      executable: interpreter, arguments: ["\(GuidePage.root)/.ci/clients/s3_store.py"])
    let line = try process.waitForLine(prefix: "S3 ", timeoutSeconds: 60)
    let words = line.split(separator: " ").map(String.init)
    guard words.count == 4 else {
      throw ServerProcessError(description: "the store printed: \(process.output)")
    }
    (url, bucket, accessKeyID, secretAccessKey) = (words[0], words[1], words[2], words[3])
  }
}
