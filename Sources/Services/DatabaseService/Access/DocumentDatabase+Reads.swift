import DocumentStore
import KeyValue
import PipelineEngine

extension DocumentDatabase {
  /// Returns a function that reads at a version, for the threads that help with the scan of a pipeline. Rules do not
  /// apply to it.
  func reads(at version: Int64) -> PipelineRun.Reads {
    { body in
      try self.read { reader in
        try self.checkReadable(version, &reader)
        try body(reader.snapshot)
      }
    }
  }
}
