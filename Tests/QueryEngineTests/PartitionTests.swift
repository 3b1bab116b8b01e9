import DocumentModel
import DocumentStore
import Testing
import TestSupport
@testable import QueryEngine

/// Cuts divide a collection group into disjoint parts that cover it.
@Suite struct PartitionTests {
  @Test(arguments: 1...8) func partsCoverTheGroup(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let database = try QueryDatabase()
    var paths: [String] = []
    // Nested collections of the group, and one whose ID only begins alike.
    for collection in ["g", "g/1/g", "a/x/g", "z/y/g", "g/1/gg"] {
      let count = Int.random(in: 0...60, using: &random)
      paths += (0..<count).map { "\(collection)/\($0 % 3 == 0 ? "\($0)" : "__id\($0)__")" }
    }
    let version = try database.commit(paths.map { .set($0, ("a", 1)) })
    try database.commit(
      paths.filter { _ in random.chance(oneIn: 3) }.map { .delete($0) } + [.set("g/new", ("a", 1))])
    for version in [nil, version] {
      var query = Query(collectionID: "g", includesDescendants: true)
      query.orders = [Order(field("__name__"))]
      let whole = try database.run(query, at: version)
      for cutsMax in [1, 2, 3, 7, 50, 10_000] {
        let cuts = try database.cuts("g", cutsMax, at: version)
        #expect(cuts.count <= cutsMax && cuts == cuts.sorted() && Set(cuts).count == cuts.count, "seed \(seed)")
        #expect(cuts.count == min(cutsMax, max(whole.count - 1, 0)), "seed \(seed)")
        var parts: [String] = []
        for (start, end) in zip([nil] + cuts.map(Optional.some), cuts.map(Optional.some) + [nil]) {
          query.start = start.map { QueryBound([database.reference($0)], isBefore: true) }
          query.end = end.map { QueryBound([database.reference($0)], isBefore: true) }
          let part = try database.run(query, at: version)
          #expect(part.count <= 2 * whole.count / (cuts.count + 1) + 1, "seed \(seed): part sizes differ too much")
          parts += part
        }
        #expect(parts == whole, "seed \(seed), \(cutsMax) cuts")
        (query.start, query.end) = (nil, nil)
      }
    }
  }

  /// With more documents than samples, the sampler must drop names.
  @Test func largeGroupsAreDividedEvenly() throws {
    let database = try QueryDatabase()
    for start in stride(from: 0, to: 5000, by: 500) {
      try database.commit((start..<start + 500).map { .set("c/d\($0 + 10_000)", ("a", 1)) })
    }
    let cuts = try database.cuts("c", 4)
    #expect(cuts.count == 4)
    for (index, cut) in cuts.enumerated() {
      let place = try #require(Int(cut.path.id.dropFirst())) - 10_000
      #expect(abs(place - 1000 * (index + 1)) < 20, "cut \(index) is at \(place)")
    }
  }

  @Test func smallGroupsHaveNoCuts() throws {
    let database = try QueryDatabase()
    #expect(try database.cuts("c", 4).isEmpty)
    try database.commit([.set("c/only", ("a", 1))])
    #expect(try database.cuts("c", 4).isEmpty)
  }
}

extension QueryDatabase {
  /// Returns the cuts of a group, found in small slices.
  fileprivate func cuts(_ group: String, _ cutsMax: Int, at version: Int64? = nil) throws -> [DocumentKey] {
    let query = try ResolvedQuery(Query(collectionID: group, includesDescendants: true), in: id)
    let version = try version ?? lastVersion()
    let sampler = try database.read { try PartitionSampler(query, cutsMax: cutsMax, $0.snapshot, at: version) }
    while true {
      if let cuts = try database.read({ try sampler.slice($0.snapshot, units: 60) }) { return cuts }
    }
  }

  fileprivate func reference(_ key: DocumentKey) -> Value { .reference(id.documentsRoot + "/" + key.path.text) }
}
