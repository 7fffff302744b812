"""The official `anthropic` package, as an application uses it."""
import json
import os

from anthropic import Anthropic, AuthenticationError, BadRequestError

MODEL = os.environ["MODEL"]
HELLO = [{"role": "user", "content": "hi"}]
TOOLS = [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]

client = Anthropic(base_url=os.environ["ROOT"] + "/api", api_key=os.environ["KEY"], max_retries=0)
asked = {"model": MODEL, "max_tokens": 100}
seen = {}

whole = client.messages.create(messages=HELLO, **asked)
seen["whole"] = whole.content[0].text
seen["finish"] = whole.stop_reason
seen["usage"] = [whole.usage.input_tokens, whole.usage.output_tokens]

with client.messages.stream(messages=HELLO, **asked) as stream:
    seen["stream"] = "".join(stream.text_stream)
    final = stream.get_final_message()
seen["stream_usage"] = [final.usage.input_tokens, final.usage.output_tokens]

message = client.messages.create(messages=HELLO, tools=TOOLS, **asked)
call = next(block for block in message.content if block.type == "tool_use")
seen["call"] = [call.id, call.name, call.input]
result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain, 9 °C"}
turns = [*HELLO, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
seen["after_tools"] = client.messages.create(messages=turns, tools=TOOLS, **asked).content[0].text

try:
    client.messages.create(messages=HELLO, model=MODEL + "x", max_tokens=100)
except BadRequestError as error:
    seen["unknown_model"] = error.message
try:
    Anthropic(base_url=client.base_url, api_key="sk-wrong", max_retries=0).messages.create(messages=HELLO, **asked)
except AuthenticationError as error:
    seen["wrong_key"] = error.status_code

print(json.dumps(seen))
