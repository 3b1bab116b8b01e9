/// Jobs that wait, in the order in which they were added. It does not lock.
package struct JobQueue<Job> {
  /// A job that was taken is `nil`, which frees the objects to which it refers.
  private var jobs: [Job?] = []
  /// The index of the next job.
  private var first = 0

  /// Creates an empty queue.
  package init() {}

  /// The number of jobs that wait. It is stored, because event loops read it for each request, and the count of an array
  /// of a generic type needs a look-up of that type.
  package private(set) var count = 0
  /// Whether no job waits.
  package var isEmpty: Bool { count == 0 }

  /// Adds a job at the end.
  package mutating func append(_ job: Job) {
    jobs.append(job)
    count += 1
  }

  /// Takes the oldest job. Costs constant time on average.
  package mutating func popFirst() -> Job? {
    guard count > 0 else { return nil }
    count -= 1
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
