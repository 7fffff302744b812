"""The official `openai` package, as an application uses it."""
import json
import os

from openai import AuthenticationError, BadRequestError, OpenAI

MODEL = os.environ["MODEL"]
HELLO = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]

client = OpenAI(base_url=os.environ["ROOT"] + "/api/v1", api_key=os.environ["KEY"], max_retries=0)
seen = {}

whole = client.chat.completions.create(model=MODEL, messages=HELLO)
seen["whole"] = whole.choices[0].message.content
seen["finish"] = whole.choices[0].finish_reason
seen["usage"] = [whole.usage.prompt_tokens, whole.usage.completion_tokens]

text = ""
for chunk in client.chat.completions.create(
        model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}):
    for choice in chunk.choices:
        text += choice.delta.content or ""
    if chunk.usage:
        seen["stream_usage"] = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens]
seen["stream"] = text

message = client.chat.completions.create(model=MODEL, messages=HELLO, tools=TOOLS).choices[0].message
call = message.tool_calls[0]
seen["call"] = [call.id, call.function.name, json.loads(call.function.arguments)]
result = {"role": "tool", "tool_call_id": call.id, "content": "rain, 9 °C"}
second = client.chat.completions.create(model=MODEL, messages=[*HELLO, message, result], tools=TOOLS)
seen["after_tools"] = second.choices[0].message.content

response = client.responses.create(model=MODEL, input="hi")
seen["responses"] = response.output_text

try:
    client.chat.completions.create(model=MODEL + "x", messages=HELLO)
except BadRequestError as error:
    seen["unknown_model"] = error.message
try:
    OpenAI(base_url=client.base_url, api_key="sk-wrong", max_retries=0).models.list()
except AuthenticationError as error:
    seen["wrong_key"] = error.status_code

print(json.dumps(seen))
