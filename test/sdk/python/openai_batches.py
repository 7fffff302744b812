"""Batches of the official `openai` package, as an application uses them."""
import json
import os
import time

from openai import APIStatusError, OpenAI

client = OpenAI(base_url=os.environ["ROOT"] + "/api/v1", api_key=os.environ["KEY"], max_retries=0)
MODEL = "simulated/script"
ENDED = ("completed", "failed", "expired", "cancelled")


def line(custom_id, script, **more):
    messages = [{"role": "user", "content": json.dumps(script)}]
    body = {"model": MODEL, "max_tokens": 50, "messages": messages}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body, **more}


def upload(lines):
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in lines)
    return client.files.create(file=("requests.jsonl", text.encode()), purpose="batch")


def create(lines, **more):
    return client.batches.create(
        input_file_id=upload(lines).id, endpoint="/v1/chat/completions", completion_window="24h", **more)


def ended(batch):
    while batch.status not in ENDED:
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    return batch


def content(file_id):
    return [json.loads(each) for each in client.files.content(file_id).text.splitlines()]


made = create([line("a", {"text": "Bonjour, 北京 🌤"}), line("b", {"unknown": 1})], metadata={"team": "research"},
              output_expires_after={"anchor": "created_at", "seconds": 3600})
done = ended(made)
output = content(done.output_file_id)
errors = content(done.error_file_id)
bad = ended(create([line("a", {}), line("a", {})]))
try:
    client.batches.create(input_file_id="file_none", endpoint="/v1/chat/completions", completion_window="24h")
except APIStatusError as error:
    missing = error.status_code
cancelled = create([line("c", {"text": "x", "delay_ms": {"headers": 200}})])
output_file = client.files.retrieve(done.output_file_id)
seen = {
    "made": [made.object, made.status, made.metadata],
    "done": [done.status, done.model, done.request_counts.model_dump(), done.usage.total_tokens > 0],
    "output": [[each["custom_id"], each["response"]["body"]["choices"][0]["message"]["content"]] for each in output],
    "errors": [[each["custom_id"], each["response"]["status_code"]] for each in errors],
    "bad": [bad.status, bad.errors.data[0].code, bad.errors.data[0].line, bad.errors.data[0].param],
    "missing": missing,
    "cancelling": client.batches.cancel(cancelled.id).status,
    "cancelled": ended(client.batches.retrieve(cancelled.id)).status,
    "listed": [each.id for each in client.batches.list(limit=2)] == [cancelled.id, bad.id, done.id],
    "expires": output_file.expires_at - output_file.created_at,
    "files": {done.output_file_id, done.error_file_id} <= {
        each.id for each in client.files.list(purpose="batch_output", limit=1)},
    "deleted": client.files.delete(done.input_file_id).deleted,
}
print(json.dumps(seen))
