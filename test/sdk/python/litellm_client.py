"""`litellm` as a client of both wire formats."""
import json
import os

import litellm

HELLO = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]
FORMAT = os.environ["FORMAT"]
BASE = os.environ["ROOT"] + ("/api/v1" if FORMAT == "openai" else "/api")


def ask(messages=HELLO, model=os.environ["MODEL"], key=os.environ["KEY"], **more):
    return litellm.completion(model=f"{FORMAT}/{model}", api_base=BASE, api_key=key, messages=messages,
                              max_tokens=100, num_retries=0, max_retries=0, **more)


seen = {}
whole = ask()
seen["whole"] = whole.choices[0].message.content
seen["finish"] = whole.choices[0].finish_reason
seen["usage"] = [whole.usage.prompt_tokens, whole.usage.completion_tokens]

text = ""
for chunk in ask(stream=True, stream_options={"include_usage": True}):
    text += chunk.choices[0].delta.content or "" if chunk.choices else ""
    usage = getattr(chunk, "usage", None)
    if usage:
        seen["stream_usage"] = [usage.prompt_tokens, usage.completion_tokens]
seen["stream"] = text

message = ask(tools=TOOLS).choices[0].message
call = message.tool_calls[0]
seen["call"] = [call.id, call.function.name, json.loads(call.function.arguments)]
result = {"role": "tool", "tool_call_id": call.id, "content": "rain, 9 °C"}
seen["after_tools"] = ask([*HELLO, message.model_dump(), result], tools=TOOLS).choices[0].message.content

try:
    ask(model=os.environ["MODEL"] + "x")
except litellm.BadRequestError as error:
    seen["unknown_model"] = str(error)
try:
    ask(key="sk-wrong")
except litellm.AuthenticationError as error:
    seen["wrong_key"] = error.status_code

print(json.dumps(seen))
