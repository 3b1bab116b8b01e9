import Foundation
import Testing
import TestSupport

/// `journeys`, guided self-reflection content, used by guests, members, subscribers and a content tool.
@Suite(.needs(.hearth))
struct JourneysScenario {
  @Test(.timeLimit(.minutes(10))) func scenarioWorksOverREST() async throws {
    try await Scenario.run("journeys") { app in
      let editor = try app.person("editor", claims: #"{"admin": true}"#)
      let guest = try app.newcomer()
      try Self.content(app, guest)
      try Self.profile(app, guest)
      let subscriber = try Self.membership(app, guest)
      let other = try app.newcomer()
      Self.contentTool(app, editor, other, subscriber)
      Self.media(app, editor, other, subscriber)
      Self.forbiddenMedia(app, editor, other, subscriber)
    }
  }

  @Test(.needs(.pythonClients), .timeLimit(.minutes(10))) func scenarioWorksWithPythonClients() async throws {
    try await Scenario.run("journeys") { try $0.runPython() }
  }

  private static let free = AppQuery("journeys").where("paid", "==", false)

  private static func content(_ app: Scenario, _ guest: Person) throws {
    let visitor = app.visitor()
    app.step("Signed-in users read content, guests included.") {
      app.deny(try visitor.get("journeys/first-steps"), "a journey")
      app.deny(try visitor.find(free), "the free journeys")
      app.deny(try visitor.list("recommended"), "recommendations")
      app.check(try guest.get("journeys/first-steps").fields["title"], json: "First steps")
    }
    app.step("Users without a subscription list with paid == false, and open no paid journey.") {
      app.check(try guest.find(free).documents.map(\.id), ["being-heard", "first-steps", "sleep-well"])
      app.deny(try guest.list("journeys"), "all journeys")
      app.deny(try guest.find(AppQuery("journeys")), "a query for all journeys")
      app.deny(try guest.find(AppQuery("journeys").where("paid", "==", true)), "the paid journeys")
      app.deny(try guest.get("journeys/grief"), "a paid journey")
      app.deny(try guest.list("journeys/grief/practices"), "its practices")
      app.deny(try guest.get("journeys/grief/practices/letters/exercises/letters-01"), "an exercise of a paid journey")
      app.deny(try guest.get("journeys/none"), "a missing journey")
    }
    app.step("Exercises have an order: stories with an image and a text, questions with an input.") {
      app.check(try guest.list("journeys/first-steps/practices").documents.count, 7, "the number of practices")
      let exercises = try guest.list(
        "journeys/first-steps/practices/arriving/exercises", [("orderBy", "order")]
      ).documents
      app.check(exercises.map { $0["order"]?.number }, [1, 2, 3, 4, 5, 6])
      for exercise in exercises {
        let isStory = exercise["imageURL"] != nil && exercise["text"] != nil
        app.check(isStory != (exercise["title"] != nil && exercise["input"] != nil), exercise.path)
      }
    }
    app.step("An app follows references from recommended, as far as its user may read.") {
      let picks = try guest.find(AppQuery("recommended").order("order")).documents
      let statuses = try picks.map { pick in
        try guest.get(pick["practice"]?["$ref"]?.stringValue ?? "").status
      }
      // The third and the fourth belong to paid journeys. The practice of the last one was withdrawn.
      app.check(statuses, [200, 200, 403, 403, 200, 200, 404])
    }
  }

  private static func profile(_ app: Scenario, _ guest: Person) throws {
    let mine = "profiles/\(guest.uid)"
    let progress = try guest.follow("\(mine)/practices")
    let written = AppQuery(group: "inputs").where("uid", "==", .string(guest.uid))
    let inputs = try guest.follow(written)
    app.step("Progress consists of the practices in the profile, and updates live.") {
      try progress.wait { $0.documents.isEmpty }
      try inputs.wait { $0.documents.isEmpty }
      let writes: [AppWrite] = [
        .set("\(mine)/practices/arriving", ["rating": 4, "mood": "calm", "completedAt": at("2025-05-01T08:00:00Z")]),
        .set("\(mine)/practices/arriving/inputs/arriving-03", ["uid": .string(guest.uid), "text": "tired"]),
        .create("\(mine)/practices/letters/inputs/letters-03", ["uid": .string(guest.uid), "text": "Dear …"]),
      ]
      app.allow(try guest.commit(writes), "a practice and its inputs")
      try progress.wait { Set($0.documents.keys) == ["\(mine)/practices/arriving"] }
      app.check(progress.documents["\(mine)/practices/arriving"]?["mood"], json: "calm")
    }
    app.step("Parent documents need not exist.") {
      app.check(try guest.get(mine).status, 404, "the profile")
      app.check(try guest.get("\(mine)/practices/letters").status, 404, "a practice with inputs only")
      app.check(try guest.list("\(mine)/practices").documents.map(\.id), ["arriving"])
      app.check(try guest.list("\(mine)/practices/letters/inputs").documents.map(\.id), ["letters-03"])
    }
    app.step("A user reads all their own inputs across collections, also live.") {
      app.check(Set(try guest.find(written).documents.map(\.id)), ["arriving-03", "letters-03"])
      try inputs.wait { $0.documents.count == 2 }
      app.allow(try guest.delete("\(mine)/practices/letters/inputs/letters-03"))
      try inputs.wait { $0.documents.count == 1 }
      app.deny(try guest.find(AppQuery(group: "inputs")), "the inputs of all users")
      app.deny(try guest.find(AppQuery(group: "inputs").where("uid", "==", "anon-5f0c2a")), "another user's inputs")
      app.check(try guest.follow(AppQuery(group: "inputs")).status, 403, "the status of a feed of all inputs")
    }
    app.step("Only its user reads and writes a profile and everything below it.") {
      let other = "profiles/anon-5f0c2a/practices"
      app.deny(try guest.get("profiles/anon-5f0c2a"), "another user's profile")
      app.deny(try guest.list(other), "another user's progress")
      app.deny(try guest.get("\(other)/letters/inputs/letters-03"), "another user's input")
      app.check(try guest.follow(other).status, 403, "the status of a feed of another user's progress")
      app.deny(try guest.set("\(other)/letters", ["rating": 1]), "another user's rating")
      app.deny(try guest.delete("\(other)/letters/inputs/letters-03"), "deleting another user's input")
      let planted: JSONNode = ["uid": "anon-5f0c2a", "text": "not theirs"]
      app.deny(try guest.set("\(mine)/practices/letters/inputs/x", planted), "an input with another user's uid")
    }
  }

  /// Links the guest to an email address and a password, and continues on two devices. Returns the member as a
  /// subscriber.
  private static func membership(_ app: Scenario, _ guest: Person) throws -> Person {
    let mine = "profiles/\(guest.uid)"
    let address: JSONNode = ["email": "mia@example.com", "password": "correct horse"]
    app.step("A guest who is linked to an email address and a password keeps the uid and the data.") {
      let linked = try guest.account("update", .object([.init("idToken", .string(guest.idToken))] + address.members))
      app.allow(linked, "linking")
      app.check(linked.json["localId"], json: .string(guest.uid))
      let taken = try app.newcomer()
      let refused = try taken.account("update", .object([.init("idToken", .string(taken.idToken))] + address.members))
      app.check(refused.errorMessage, "EMAIL_EXISTS", "the error for an address that is taken")
    }
    let member = try Person(of: app, call: "signInWithPassword", address)
    let elsewhere = try Person(of: app, call: "signInWithPassword", address)
    app.step("Each of two devices of a user shows the changes of the other.") {
      app.check([member.uid, elsewhere.uid], [guest.uid, guest.uid])
      app.check(try member.list("\(mine)/practices").documents.map(\.id), ["arriving"])
      let progress = try member.follow("\(mine)/practices")
      try progress.wait { $0.documents.count == 1 }
      app.allow(try elsewhere.set("\(mine)/practices/noticing-breath", ["rating": 5]))
      try progress.wait { $0.documents.count == 2 }
    }
    app.step("Paid journeys need a subscriber claim, which the next token has.") {
      app.deny(try member.get("journeys/grief"), "a paid journey for a member")
      try app.hearth("accounts", "set-claims", member.uid, #"{"subscriber": true}"#)
      app.deny(try member.get("journeys/grief"), "a paid journey with the old token")
    }
    let subscriber = try Person(of: app, call: "signInWithPassword", address)
    app.step("A subscriber opens all journeys.") {
      app.check(try subscriber.list("journeys").documents.count, 6)
      app.allow(try subscriber.get("journeys/grief"), "a paid journey")
      let exercises = try subscriber.list("journeys/grief/practices/letters/exercises", [("orderBy", "order")])
      app.check(exercises.documents.isEmpty, false, "whether the exercises of a paid journey are empty")
      app.deny(try subscriber.update("journeys/grief", ["paid": false]), "writing content")
    }
    return subscriber
  }

  private static func contentTool(
    _ app: Scenario, _ editor: Person, _ guest: Person, _ subscriber: Person
  ) {
    app.step("The content tool lists everything, across collections.") {
      app.check(try editor.list("journeys").documents.count, 6)
      let count = try editor.aggregate(AppQuery(group: "exercises"), [("all", .count)])
      app.check(count.aggregates, json: ["all": 201])
      app.deny(try subscriber.find(AppQuery(group: "exercises")), "all exercises for a subscriber")
      app.check(try editor.list("journeys/grief/practices").documents.isEmpty, false)
    }
    app.step("Only an admin claim allows writing content. Open screens follow.") {
      let screen = try guest.follow(free)
      try screen.wait { $0.documents.count == 3 }
      let writes: [AppWrite] = [
        .create("journeys/new-year", ["title": "New year", "authors": ["Mira Osei"], "paid": false]),
        .create("journeys/new-year/practices/looking-back", ["topic": "time", "duration": 10]),
        .create("journeys/new-year/practices/looking-back/exercises/one", ["order": 1, "text": "Breathe."]),
        .create("recommended/new", ["practice": reference("journeys/new-year/practices/looking-back"), "order": 8]),
      ]
      app.deny(try guest.commit(writes), "content by a guest")
      app.deny(try subscriber.commit(writes), "content by a subscriber")
      app.allow(try editor.commit(writes), "content by the tool")
      try screen.wait { $0.documents["journeys/new-year"] != nil }
      let practices = try guest.follow("journeys/new-year/practices")
      try practices.wait { $0.documents.count == 1 }

      // When the journey becomes a paid one, it leaves the list, and feeds below it end before any further change.
      app.allow(try editor.update("journeys/new-year", ["paid": true]))
      try screen.wait { $0.documents["journeys/new-year"] == nil }
      app.allow(try editor.set("journeys/new-year/practices/secret", ["topic": "for subscribers"]))
      try practices.waitForEnd()
      app.check(practices.endedWithCode, 7, "the code that ended the feed of practices")
      app.check(practices.documents["journeys/new-year/practices/secret"] == nil, "a paid practice is shown")
    }
    app.step("The content tool sees no profile.") {
      app.deny(try editor.get("profiles/\(subscriber.uid)/practices/arriving"), "progress")
      app.deny(try editor.find(AppQuery(group: "inputs")), "all inputs")
      app.deny(try editor.find(AppQuery(group: "practices")), "all practices, including those of profiles")
    }
  }

  /// Content without repetition, so that a wrong part is noticed.
  private static func noise(_ count: Int) -> [UInt8] {
    var random = SplitMix(seed: UInt64(count))
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  private static func media(_ app: Scenario, _ editor: Person, _ guest: Person, _ subscriber: Person) {
    let (tool, theirs, paying) = (StoredFiles(of: editor), StoredFiles(of: guest), StoredFiles(of: subscriber))
    let (image, sound, film) = (noise(40_000), noise(300_000), noise(1_200_000))
    let cover = "journeys/first-steps/cover.webp"
    let letter = "journeys/grief/letter.ogg"
    app.step("Images, audio and video are stored as files. Uploads work in each way that SDKs use.") {
      app.check(try tool.upload(cover, image, type: "image/webp").status, 200, "an image")
      let spoken = try tool.upload(letter, sound, type: "audio/ogg", metadata: ["speaker": "Mira Osei"])
      app.check(spoken.status, 200, "the status of audio with metadata")
      app.check(try JSONNode(parsing: spoken.body)["metadata"]?["speaker"], json: "Mira Osei")
      let filmed = try tool.upload("journeys/grief/intro.mp4", film, type: "video/mp4", inPiecesOf: 512 << 10)
      app.check(filmed.status, 200, "the status of a film in pieces, each over another connection")
      app.check(try JSONNode(parsing: filmed.body)["size"], json: .string("\(film.count)"))
    }
    app.step("A document's imageURL leads to the image.") {
      let path = try guest.get("journeys/first-steps").fields["imageURL"]?.stringValue
      let reply = try theirs.download(path ?? "")
      app.check(reply.body == image, "\(path ?? "nothing") is another image: \(reply.status)")
      app.check(reply.header("content-type"), "image/webp")
    }
    app.step("Downloads support ranges and conditions, for films and for cached files.") {
      let middle = try paying.download("journeys/grief/intro.mp4", headers: [("Range", "bytes=700000-700999")])
      app.check(middle.status, 206)
      app.check(middle.header("content-range"), "bytes 700000-700999/1200000")
      app.check(middle.body == Array(film[700_000..<701_000]), "other bytes than those asked for")
      let end = try paying.download(letter, headers: [("Range", "bytes=-500")])
      app.check(end.body == Array(sound.suffix(500)), "other bytes than the last 500")
      let etag = end.header("etag") ?? ""
      app.check(try paying.download(letter, headers: [("If-None-Match", etag)]).status, 304, "unchanged")
      app.check(try paying.download(letter, headers: [("Range", "bytes=300000-")]).status, 416, "a range after the end")
    }
    app.step("Media of a paid journey are for subscribers and for holders of a link with the file's token.") {
      app.check(try theirs.download(letter).status, 403, "a guest")
      app.check(try StoredFiles(of: app.visitor()).download(cover).status, 403, "nobody")
      app.check(try theirs.attributes(letter).status, 403, "the status of its metadata")
      let token = try JSONNode(parsing: tool.attributes(letter).body)["downloadTokens"]?.stringValue ?? "none"
      app.check(try StoredFiles(of: app.visitor()).follow(letter, token: token).body == sound, "the link fails")
      let wrong = "00000000-0000-4000-8000-000000000000"
      app.check(try StoredFiles(of: app.visitor()).follow(letter, token: wrong).status, 403, "another token")
    }
  }

  private static func forbiddenMedia(
    _ app: Scenario, _ editor: Person, _ guest: Person, _ subscriber: Person
  ) {
    let (tool, theirs, paying) = (StoredFiles(of: editor), StoredFiles(of: guest), StoredFiles(of: subscriber))
    app.step("Only the content tool uploads content, and only images, sound and film.") {
      for (who, files) in [("a guest", theirs), ("a subscriber", paying)] {
        app.check(try files.upload("journeys/grief/x.ogg", [1], type: "audio/ogg").status, 403, who)
        let large = try files.upload("journeys/grief/x.mp4", [1, 2], type: "video/mp4", inPiecesOf: 1)
        app.check(large.status, 403, "the status of an upload in pieces by \(who)")
        app.check(try files.delete("journeys/first-steps/cover.webp").status, 403, "\(who) deleting")
      }
      app.check(try tool.upload("journeys/grief/page.html", [1], type: "text/html").status, 403, "a page")
      app.check(try tool.upload("elsewhere.webp", [1], type: "image/webp").status, 403, "outside the journeys")
      app.check(try theirs.download("journeys/first-steps/cover.webp").status, 200, "the existing cover")
    }
    app.step("Only its user reads and writes a profile's files: media of at most 20 MiB.") {
      let folder = "profiles/\(guest.uid)/"
      app.check(try theirs.upload(folder + "voice.ogg", [1, 2, 3], type: "audio/ogg").status, 200, "one's own")
      app.check(try theirs.download(folder + "voice.ogg").body, [1, 2, 3])
      let names = try JSONNode(parsing: theirs.list(folder).body)["items"]?.elements.map { $0["name"]?.stringValue }
      app.check(names, [folder + "voice.ogg"], "the folder")
      app.check(try tool.download(folder + "voice.ogg").status, 403, "the status of a download by the content tool")
      app.check(try tool.list(folder).status, 403, "the status of a list by the content tool")
      app.check(try theirs.upload("profiles/anon-5f0c2a/x.ogg", [1], type: "audio/ogg").status, 403, "another's")
      app.check(try theirs.upload(folder + "x.pdf", [1], type: "application/pdf").status, 403, "another type")
      let large = [UInt8](repeating: 1, count: 20 << 20 | 1)
      app.check(try theirs.upload(folder + "x.ogg", large, type: "audio/ogg").status, 403, "too much")
      app.check(try theirs.attributes(folder + "x.ogg").status, 404, "the status of a refused file")
      app.check(try theirs.delete(folder + "voice.ogg").status, 204, "the status of deleting the user's own file")
    }
  }
}
