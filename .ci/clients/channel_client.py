"""Tests the web SDK's channel with python-webchannel, an independent client.

Uses streamed responses only, because this client requests received messages again in long polls.

usage: channel_client.py HOST:PORT
"""

import asyncio
import sys
import uuid

from python_webchannel import EventType, WebChannelOptions, create_web_channel_transport

ROOT = "projects/demo/databases/(default)"
SECONDS = 10


class Channel:
    """A channel and the messages it received."""

    def __init__(self, server, method):
        url = f"http://{server}/google.firestore.v1.Firestore/{method}/channel?database={ROOT}"
        self.channel = create_web_channel_transport().create_web_channel(
            url, WebChannelOptions(send_raw_json=True))
        self.messages = asyncio.Queue()
        self.channel.listen(EventType.MESSAGE, lambda event: self.messages.put_nowait(event.data))

    async def open(self, first):
        await self.channel.send({"database": ROOT, **first})
        await self.channel.open()

    async def send(self, message):
        await self.channel.send(message)

    async def next(self):
        message = await asyncio.wait_for(self.messages.get(), SECONDS)
        return message[0] if isinstance(message, list) else message

    async def until(self, wanted):
        """Returns the first message that `wanted` accepts, and drops the preceding messages."""
        while True:
            message = await self.next()
            if wanted(message):
                return message

    async def snapshot(self):
        """Returns the messages up to the next consistent state."""
        messages = []
        while True:
            message = await self.next()
            messages.append(message)
            change = message.get("targetChange", {})
            if not change.get("targetIds") and "readTime" in change:
                return messages

    async def close(self):
        await self.channel.close()


def query(collection, target):
    return {"addTarget": {"targetId": target, "query": {
        "parent": f"{ROOT}/documents", "structuredQuery": {"from": [{"collectionId": collection}]}}}}


def names(messages):
    return [m["documentChange"]["document"]["name"].rsplit("/", 1)[1] for m in messages if "documentChange" in m]


async def a_listener_sees_writes(server):
    collection = f"c{uuid.uuid4().hex}"
    listen, write = Channel(server, "Listen"), Channel(server, "Write")
    try:
        await listen.open(query(collection, 2))
        first = await listen.snapshot()
        kinds = [m["targetChange"].get("targetChangeType", "NO_CHANGE") for m in first]
        assert kinds == ["ADD", "CURRENT", "NO_CHANGE"], kinds
        await write.open({})
        token = (await write.next())["streamToken"]
        name = f"{ROOT}/documents/{collection}/ünïcode"
        await write.send({"streamToken": token, "writes": [
            {"update": {"name": name, "fields": {"text": {"stringValue": "日本語 😀"}}}}]})
        answer = await write.next()
        assert len(answer["writeResults"]) == 1 and "commitTime" in answer, answer
        seen = await listen.until(lambda m: "documentChange" in m)
        document = seen["documentChange"]["document"]
        assert document["name"] == name and document["fields"]["text"]["stringValue"] == "日本語 😀", document
        assert document["updateTime"] == answer["writeResults"][0]["updateTime"], (document, answer)
        await write.send({"streamToken": answer["streamToken"], "writes": [{"delete": name}]})
        gone = await listen.until(lambda m: "documentDelete" in m)
        assert gone["documentDelete"]["document"] == name, gone
    finally:
        await listen.close()
        await write.close()


async def targets_come_and_go(server):
    collection = f"c{uuid.uuid4().hex}"
    listen = Channel(server, "Listen")
    try:
        await listen.open(query(collection, 2))
        await listen.snapshot()
        await listen.send({"database": ROOT, **query(collection, 4)})
        await listen.snapshot()
        await listen.send({"database": ROOT, "removeTarget": 2})
        removed = await listen.until(lambda m: m.get("targetChange", {}).get("targetChangeType") == "REMOVE")
        assert removed["targetChange"]["targetIds"] == [2] and "cause" not in removed["targetChange"], removed
    finally:
        await listen.close()


async def a_listener_resumes(server):
    collection = f"c{uuid.uuid4().hex}"
    write = Channel(server, "Write")
    await write.open({})
    token = (await write.next())["streamToken"]

    async def put(document):
        nonlocal token
        name = f"{ROOT}/documents/{collection}/{document}"
        await write.send({"streamToken": token, "writes": [{"update": {"name": name, "fields": {}}}]})
        token = (await write.next())["streamToken"]

    await put("a")
    first = Channel(server, "Listen")
    await first.open(query(collection, 2))
    messages = await first.snapshot()
    assert names(messages) == ["a"], messages
    resume = messages[-1]["targetChange"]["resumeToken"]
    await first.close()
    await put("b")
    second = Channel(server, "Listen")
    target = query(collection, 2)
    target["addTarget"]["resumeToken"] = resume
    await second.open(target)
    messages = await second.snapshot()
    assert names(messages) == ["b"], messages
    await second.close()
    await write.close()


async def errors_arrive_as_messages(server):
    write = Channel(server, "Write")
    await write.open({})
    token = (await write.next())["streamToken"]
    await write.send({"streamToken": token, "writes": [
        {"update": {"name": f"{ROOT}/documents/none/x", "fields": {}}, "currentDocument": {"exists": True}}]})
    answer = await write.next()
    assert answer["error"]["status"] == "NOT_FOUND", answer
    await write.close()


CHECKS = {
    "a listener sees writes": a_listener_sees_writes,
    "targets come and go": targets_come_and_go,
    "a listener resumes": a_listener_resumes,
    "errors arrive as messages": errors_arrive_as_messages,
}


async def main(server):
    passed = 0
    for name, check in CHECKS.items():
        try:
            await asyncio.wait_for(check(server), 3 * SECONDS)
            passed += 1
        except Exception as error:  # a failed check must not stop the others
            print(f"FAILED {name}: {type(error).__name__}: {error}")
    print(f"{passed} passed")


asyncio.run(main(sys.argv[1]))
