/// Jobs that wait, in the order in which they were added. It does not lock.
package struct JobQueue<Job> {
  /// A job that was taken is `nil`, which frees the objects to which it refers.
  private var jobs: [Job?] = []
  /// The index of the next job.
  private var first = 0

  /// Creates an empty queue.
  package init() {}

  /// The number of jobs that wait.
  package var count: Int { jobs.count - first }
  /// Whether no job waits.
  package var isEmpty: Bool { first == jobs.count }

  /// Adds a job at the end.
  package mutating func append(_ job: Job) { jobs.append(job) }

  /// Takes the oldest job. Costs constant time on average.
  package mutating func popFirst() -> Job? {
    guard first < jobs.count else { return nil }
    let job = jobs[first]
    jobs[first] = nil
    first += 1
    if first == jobs.count {
      jobs.removeAll(keepingCapacity: first < 1024)
      first = 0
    } else if first >= 1024, 2 * first >= jobs.count {
      jobs.removeFirst(first)
      first = 0
    }
    return job
  }
}
