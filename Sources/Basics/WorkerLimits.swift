import Glibc

/// The sizes of the pools of threads (``BoundedWorkers``), and the unfinished jobs, running or waiting, at which a pool
/// refuses more.
package enum WorkerLimits {
  /// Unfinished requests of a project that hash a password. Another one gets TOO_MANY_ATTEMPTS_TRY_LATER.
  package static let passwordsUnfinishedMax = 128
  /// The threads that hash passwords, for all projects together. Each hash takes 19 MiB of memory. A project uses one at
  /// a time, and the projects take turns.
  package static let passwordsThreadsMax = 2
  /// Unfinished requests of a project about one account that hash no password. Another one gets
  /// TOO_MANY_ATTEMPTS_TRY_LATER.
  package static let accountsUnfinishedMax = 1024
  /// The threads for requests about one account, for all projects together. A project uses one at a time.
  package static let accountsThreadsMax = 8
  /// Unfinished requests of a project about many accounts at once. Another one gets TOO_MANY_ATTEMPTS_TRY_LATER.
  package static let accountBatchesUnfinishedMax = 16
  /// The threads for requests about many accounts at once, for all projects together. A project uses one at a time.
  package static let accountBatchesThreadsMax = 4
  /// Unfinished commits whose rules take longer than a few milliseconds, of at most 512 KiB each. Another one is
  /// evaluated by the event loop of its client, which holds that client back.
  package static let plannersUnfinishedMax = 128
  /// Unfinished requests that are too large for an event loop to decode. Another one is decoded by the event loop of its
  /// client, which holds that client back. Each one waits as a copy of its body.
  package static let decodersUnfinishedMax = 8
  /// Unfinished requests that wait for another identity provider. Another one gets TOO_MANY_ATTEMPTS_TRY_LATER, or an
  /// error page.
  package static let providersUnfinishedMax = 64
  /// The threads for requests that wait for another identity provider.
  package static let providersThreadsMax = 4
  /// Mails that are not sent yet. A request that sends another one gets QUOTA_EXCEEDED.
  package static let mailsUnfinishedMax = 256
  /// Unfinished requests for metrics or readiness: of administrators, and again as many of other callers. Another one
  /// gets status 503.
  package static let operationsUnfinishedMax = 16
  /// Unfinished requests that load rules, suggest indexes, report coverage, or manage keys. Another one gets
  /// RESOURCE_EXHAUSTED.
  package static let administrationUnfinishedMax = 64
  /// The threads for requests that load rules, suggest indexes, report coverage, or manage keys.
  package static let administrationThreadsMax = 2
  /// Unfinished requests for files, without the transfer of content. Another one gets status 503.
  package static let filesUnfinishedMax = 2048
  /// The threads for requests for files, without the transfer of content. Many wait for the same disk sync.
  package static let filesThreadsMax = 64
  /// The threads that write uploads. The limits of uploads bound the jobs that wait for them.
  package static let uploadsThreadsMax = 64
  /// The threads that read content for downloads if it is not in memory. Each download has one job at a time.
  package static let fileReadsThreadsMax = 32
  /// Unfinished look-ups of files of web apps. Another request that needs one gets status 503.
  package static let hostingUnfinishedMax = 1024
  /// The threads that look for files of web apps, and read and compress them.
  package static let hostingThreadsMax = 8
  /// Unfinished early syncs of uploads. An upload skips another one, so its last sync takes longer.
  package static let fileSyncsUnfinishedMax = 32
  /// The threads for early syncs of uploads.
  package static let fileSyncsThreadsMax = 8

  /// The number of processors, which is also the number of threads of pools that compute and never wait.
  package static let processors = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
}
