import Foundation
import TestSupport
import Testing

/// `journeys`, guided self-reflection content: what guests, members, subscribers and its content tool do, and what they
/// may not.
@Suite(.enabled(if: HearthBinary.isBuilt, "no hearth binary beside the tests"))
struct JourneysScenario {
  @Test(.timeLimit(.minutes(10))) func plainClient() async throws {
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

  @Test(.needsPythonClients, .timeLimit(.minutes(10))) func pythonClient() async throws {
    try await Scenario.run("journeys") { try $0.runPython() }
  }

  private static let free = AppQuery("journeys").where("paid", "==", false)

  private static func content(_ app: Scenario, _ guest: Person) throws {
    let visitor = app.visitor()
    app.step("content is for who is signed in, guests included") {
      app.deny(try visitor.get("journeys/first-steps"), "a journey")
      app.deny(try visitor.find(free), "the free journeys")
      app.deny(try visitor.list("recommended"), "recommendations")
      app.check(try guest.get("journeys/first-steps").fields["title"], json: "First steps")
    }
    app.step("who is no subscriber lists with paid == false, and opens no paid journey") {
      app.check(try guest.find(free).documents.map(\.id), ["being-heard", "first-steps", "sleep-well"])
      app.deny(try guest.list("journeys"), "all journeys")
      app.deny(try guest.find(AppQuery("journeys")), "a query for all journeys")
      app.deny(try guest.find(AppQuery("journeys").where("paid", "==", true)), "the paid journeys")
      app.deny(try guest.get("journeys/grief"), "a paid journey")
      app.deny(try guest.list("journeys/grief/practices"), "its practices")
      app.deny(try guest.get("journeys/grief/practices/letters/exercises/letters-01"), "an exercise of it")
      app.deny(try guest.get("journeys/none"), "a journey that is not there")
    }
    app.step("exercises in order: stories with an image and a text, questions with an input") {
      app.check(try guest.list("journeys/first-steps/practices").documents.count, 7, "practices")
      let exercises = try guest.list(
        "journeys/first-steps/practices/arriving/exercises", [("orderBy", "order")]
      ).documents
      app.check(exercises.map { $0["order"]?.number }, [1, 2, 3, 4, 5, 6])
      for exercise in exercises {
        let isStory = exercise["imageURL"] != nil && exercise["text"] != nil
        app.check(isStory != (exercise["title"] != nil && exercise["input"] != nil), exercise.path)
      }
    }
    app.step("references are followed from recommended, as far as the caller may go") {
      let picks = try guest.find(AppQuery("recommended").order("order")).documents
      let statuses = try picks.map { pick in
        try guest.get(pick["practice"]?["$ref"]?.stringValue ?? "").status
      }
      // The third and the fourth are paid; the practice of the last was withdrawn.
      app.check(statuses, [200, 200, 403, 403, 200, 200, 404])
    }
  }

  private static func profile(_ app: Scenario, _ guest: Person) throws {
    let mine = "profiles/\(guest.uid)"
    let progress = try guest.follow("\(mine)/practices")
    let written = AppQuery(group: "inputs").where("uid", "==", .string(guest.uid))
    let inputs = try guest.follow(written)
    app.step("progress is the practices present in the profile, and arrives live") {
      try progress.wait { $0.documents.isEmpty }
      try inputs.wait { $0.documents.isEmpty }
      let writes: [AppWrite] = [
        .set("\(mine)/practices/arriving", ["rating": 4, "mood": "calm", "completedAt": at("2025-05-01T08:00:00Z")]),
        .set("\(mine)/practices/arriving/inputs/arriving-03", ["uid": .string(guest.uid), "text": "tired"]),
        .create("\(mine)/practices/letters/inputs/letters-03", ["uid": .string(guest.uid), "text": "Dear …"]),
      ]
      app.allow(try guest.commit(writes), "a practice and what was written in it")
      try progress.wait { Set($0.documents.keys) == ["\(mine)/practices/arriving"] }
      app.check(progress.documents["\(mine)/practices/arriving"]?["mood"], json: "calm")
    }
    app.step("the parent documents need not exist") {
      app.check(try guest.get(mine).status, 404, "the profile")
      app.check(try guest.get("\(mine)/practices/letters").status, 404, "a practice with inputs only")
      app.check(try guest.list("\(mine)/practices").documents.map(\.id), ["arriving"])
      app.check(try guest.list("\(mine)/practices/letters/inputs").documents.map(\.id), ["letters-03"])
    }
    app.step("all inputs of a user, limited to the caller, live too") {
      app.check(Set(try guest.find(written).documents.map(\.id)), ["arriving-03", "letters-03"])
      try inputs.wait { $0.documents.count == 2 }
      app.allow(try guest.delete("\(mine)/practices/letters/inputs/letters-03"))
      try inputs.wait { $0.documents.count == 1 }
      app.deny(try guest.find(AppQuery(group: "inputs")), "everybody's inputs")
      app.deny(try guest.find(AppQuery(group: "inputs").where("uid", "==", "anon-5f0c2a")), "another's inputs")
      app.check(try guest.follow(AppQuery(group: "inputs")).status, 403, "a feed of everybody's inputs")
    }
    app.step("a profile and all below it is its user's alone") {
      let other = "profiles/anon-5f0c2a/practices"
      app.deny(try guest.get("profiles/anon-5f0c2a"), "another's profile")
      app.deny(try guest.list(other), "another's progress")
      app.deny(try guest.get("\(other)/letters/inputs/letters-03"), "another's input")
      app.check(try guest.follow(other).status, 403, "a feed of another's progress")
      app.deny(try guest.set("\(other)/letters", ["rating": 1]), "another's rating")
      app.deny(try guest.delete("\(other)/letters/inputs/letters-03"), "deleting another's input")
      let planted: JSONNode = ["uid": "anon-5f0c2a", "text": "not theirs"]
      app.deny(try guest.set("\(mine)/practices/letters/inputs/x", planted), "an input planted among another's")
    }
  }

  /// Links the guest to an e-mail address and a password, and goes on on two devices; returns the member as a subscriber.
  private static func membership(_ app: Scenario, _ guest: Person) throws -> Person {
    let mine = "profiles/\(guest.uid)"
    let address: JSONNode = ["email": "mia@example.com", "password": "correct horse"]
    app.step("a guest is linked to e-mail and password, and keeps the uid and the data") {
      let linked = try guest.account("update", .object([.init("idToken", .string(guest.idToken))] + address.members))
      app.allow(linked, "linking")
      app.check(linked.json["localId"], json: .string(guest.uid))
      let taken = try app.newcomer()
      let refused = try taken.account("update", .object([.init("idToken", .string(taken.idToken))] + address.members))
      app.check(refused.errorMessage, "EMAIL_EXISTS", "linking to an address that is taken")
    }
    let member = try Person(of: app, call: "signInWithPassword", address)
    let elsewhere = try Person(of: app, call: "signInWithPassword", address)
    app.step("the same user on two devices, one seeing what the other does") {
      app.check([member.uid, elsewhere.uid], [guest.uid, guest.uid])
      app.check(try member.list("\(mine)/practices").documents.map(\.id), ["arriving"])
      let progress = try member.follow("\(mine)/practices")
      try progress.wait { $0.documents.count == 1 }
      app.allow(try elsewhere.set("\(mine)/practices/noticing-breath", ["rating": 5]))
      try progress.wait { $0.documents.count == 2 }
    }
    app.step("paid journeys only with a subscriber claim, from the next token on") {
      app.deny(try member.get("journeys/grief"), "a paid journey for a member")
      try app.hearth("accounts", "set-claims", member.uid, #"{"subscriber": true}"#)
      app.deny(try member.get("journeys/grief"), "a paid journey with the token from before")
    }
    let subscriber = try Person(of: app, call: "signInWithPassword", address)
    app.step("a subscriber opens all journeys") {
      app.check(try subscriber.list("journeys").documents.count, 6)
      app.allow(try subscriber.get("journeys/grief"), "a paid journey")
      let exercises = try subscriber.list("journeys/grief/practices/letters/exercises", [("orderBy", "order")])
      app.check(exercises.documents.isEmpty, false, "exercises of a paid journey")
      app.deny(try subscriber.update("journeys/grief", ["paid": false]), "writing content")
    }
    return subscriber
  }

  private static func contentTool(
    _ app: Scenario, _ editor: Person, _ guest: Person, _ subscriber: Person
  ) {
    app.step("the content tool lists everything, across collections") {
      app.check(try editor.list("journeys").documents.count, 6)
      let count = try editor.aggregate(AppQuery(group: "exercises"), [("all", .count)])
      app.check(count.aggregates, json: ["all": 201])
      app.deny(try subscriber.find(AppQuery(group: "exercises")), "all exercises for a subscriber")
      app.check(try editor.list("journeys/grief/practices").documents.isEmpty, false)
    }
    app.step("only an admin claim writes content; open screens follow") {
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

      // The journey becomes a paid one: it leaves the list, and what is below it is closed before anything is told.
      app.allow(try editor.update("journeys/new-year", ["paid": true]))
      try screen.wait { $0.documents["journeys/new-year"] == nil }
      app.allow(try editor.set("journeys/new-year/practices/secret", ["topic": "for who pays"]))
      try practices.waitForEnd()
      app.check(practices.endedWithCode, 7, "the feed of its practices")
      app.check(practices.documents["journeys/new-year/practices/secret"] == nil, "a practice was told that may not be")
    }
    app.step("the content tool sees no profile") {
      app.deny(try editor.get("profiles/\(subscriber.uid)/practices/arriving"), "progress")
      app.deny(try editor.find(AppQuery(group: "inputs")), "all inputs")
      app.deny(try editor.find(AppQuery(group: "practices")), "all practices, those of profiles included")
    }
  }

  /// Content that differs from place to place, so that a wrong part is noticed.
  private static func noise(_ count: Int) -> [UInt8] {
    var random = SplitMix(seed: UInt64(count))
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  private static func media(_ app: Scenario, _ editor: Person, _ guest: Person, _ subscriber: Person) {
    let (tool, theirs, paying) = (StoredFiles(of: editor), StoredFiles(of: guest), StoredFiles(of: subscriber))
    let (image, sound, film) = (noise(40_000), noise(300_000), noise(1_200_000))
    let cover = "journeys/first-steps/cover.webp"
    let letter = "journeys/grief/letter.ogg"
    app.step("images, audio and video lie beside the database, uploaded in each way that SDKs do it") {
      app.check(try tool.upload(cover, image, type: "image/webp").status, 200, "an image")
      let spoken = try tool.upload(letter, sound, type: "audio/ogg", metadata: ["speaker": "Mira Osei"])
      app.check(spoken.status, 200, "audio with metadata")
      app.check(try JSONNode(parsing: spoken.body)["metadata"]?["speaker"], json: "Mira Osei")
      let filmed = try tool.upload("journeys/grief/intro.mp4", film, type: "video/mp4", inPiecesOf: 512 << 10)
      app.check(filmed.status, 200, "a film in pieces, each over another connection")
      app.check(try JSONNode(parsing: filmed.body)["size"], json: .string("\(film.count)"))
    }
    app.step("a document's imageURL leads to the image") {
      let path = try guest.get("journeys/first-steps").fields["imageURL"]?.stringValue
      let reply = try theirs.download(path ?? "")
      app.check(reply.body == image, "\(path ?? "nothing") is another image: \(reply.status)")
      app.check(reply.header("content-type"), "image/webp")
    }
    app.step("downloads know ranges and conditions, for films and for what is kept") {
      let middle = try paying.download("journeys/grief/intro.mp4", headers: [("Range", "bytes=700000-700999")])
      app.check(middle.status, 206)
      app.check(middle.header("content-range"), "bytes 700000-700999/1200000")
      app.check(middle.body == Array(film[700_000..<701_000]), "other bytes than those asked for")
      let end = try paying.download(letter, headers: [("Range", "bytes=-500")])
      app.check(end.body == Array(sound.suffix(500)), "other bytes than the last 500")
      let etag = end.header("etag") ?? ""
      app.check(try paying.download(letter, headers: [("If-None-Match", etag)]).status, 304, "unchanged")
      app.check(try paying.download(letter, headers: [("Range", "bytes=300000-")]).status, 416, "behind the end")
    }
    app.step("media of a paid journey are for subscribers, and for who has a link with the file's token") {
      app.check(try theirs.download(letter).status, 403, "a guest")
      app.check(try StoredFiles(of: app.visitor()).download(cover).status, 403, "nobody")
      app.check(try theirs.attributes(letter).status, 403, "what is known of it")
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
    app.step("nobody else uploads content, nor the tool what is no image, sound or film") {
      for (who, files) in [("a guest", theirs), ("a subscriber", paying)] {
        app.check(try files.upload("journeys/grief/x.ogg", [1], type: "audio/ogg").status, 403, who)
        let large = try files.upload("journeys/grief/x.mp4", [1, 2], type: "video/mp4", inPiecesOf: 1)
        app.check(large.status, 403, "\(who) in pieces")
        app.check(try files.delete("journeys/first-steps/cover.webp").status, 403, "\(who) deleting")
      }
      app.check(try tool.upload("journeys/grief/page.html", [1], type: "text/html").status, 403, "a page")
      app.check(try tool.upload("elsewhere.webp", [1], type: "image/webp").status, 403, "outside the journeys")
      app.check(try theirs.download("journeys/first-steps/cover.webp").status, 200, "nothing was deleted")
    }
    app.step("a profile's files are its user's alone, media, and of at most 20 MiB") {
      let folder = "profiles/\(guest.uid)/"
      app.check(try theirs.upload(folder + "voice.ogg", [1, 2, 3], type: "audio/ogg").status, 200, "one's own")
      app.check(try theirs.download(folder + "voice.ogg").body, [1, 2, 3])
      let names = try JSONNode(parsing: theirs.list(folder).body)["items"]?.elements.map { $0["name"]?.stringValue }
      app.check(names, [folder + "voice.ogg"], "the folder")
      app.check(try tool.download(folder + "voice.ogg").status, 403, "the content tool")
      app.check(try tool.list(folder).status, 403, "the content tool listing")
      app.check(try theirs.upload("profiles/anon-5f0c2a/x.ogg", [1], type: "audio/ogg").status, 403, "another's")
      app.check(try theirs.upload(folder + "x.pdf", [1], type: "application/pdf").status, 403, "another type")
      let large = [UInt8](repeating: 1, count: 20 << 20 | 1)
      app.check(try theirs.upload(folder + "x.ogg", large, type: "audio/ogg").status, 403, "too much")
      app.check(try theirs.attributes(folder + "x.ogg").status, 404, "nothing of it is kept")
      app.check(try theirs.delete(folder + "voice.ogg").status, 204, "deleting one's own")
    }
  }
}
