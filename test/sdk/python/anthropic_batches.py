"""Message batches with the official `anthropic` package, as an application uses them."""
import json
import os
import time

from anthropic import Anthropic, BadRequestError, ConflictError, NotFoundError

client = Anthropic(base_url=os.environ["ROOT"] + "/api", api_key=os.environ["KEY"])
MODEL = os.environ["MODEL"]
seen = {}


def request(custom_id, text):
    params = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
    return {"custom_id": custom_id, "params": params}


def ended(batches, batch_id):
    for _ in range(600):
        batch = batches.retrieve(batch_id)
        if batch.processing_status == "ended":
            return batch
        time.sleep(0.05)
    raise TimeoutError(batch_id)


for name, batches in [("plain", client.messages.batches), ("beta", client.beta.messages.batches)]:
    batch = batches.create(requests=[request("a", "first"), request("b", "second")])
    done = ended(batches, batch.id)
    texts = {line.custom_id: line.result.message.content[0].text for line in batches.results(batch.id)}
    seen[name] = {
        "status": [batch.processing_status, done.processing_status],
        "counts": [batch.request_counts.processing, done.request_counts.succeeded],
        "took": (done.ended_at - batch.created_at).total_seconds() >= 0,
        "texts": texts,
        "listed": batch.id in [each.id for each in batches.list(limit=1)],
        "deleted": batches.delete(batch.id).type,
    }

cancelled = client.messages.batches.create(requests=[request(str(n), "x") for n in range(50)])
seen["cancelled"] = client.messages.batches.cancel(cancelled.id).processing_status
last = ended(client.messages.batches, cancelled.id)
seen["all"] = last.request_counts.succeeded + last.request_counts.canceled
try:
    client.messages.batches.cancel(cancelled.id)
except ConflictError as error:
    seen["conflict"] = error.body["error"]["type"]
try:
    client.messages.batches.create(requests=[request("a", "x"), request("a", "x")])
except BadRequestError as error:
    seen["duplicate"] = error.body["error"]["message"]
try:
    client.messages.batches.retrieve("msgbatch_x")
except NotFoundError as error:
    seen["unknown"] = error.body["error"]["type"]
print(json.dumps(seen))
