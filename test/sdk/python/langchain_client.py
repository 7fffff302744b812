"""`langchain-openai`, as an application uses it."""
import json
import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from openai import AuthenticationError, BadRequestError


def weather(city: str) -> str:
    """The weather of a city."""
    return city


def model(**changes):
    settings = {"model": os.environ["MODEL"], "api_key": os.environ["KEY"], "max_retries": 0}
    return ChatOpenAI(base_url=os.environ["ROOT"] + "/api/v1", **{**settings, **changes})


seen = {}
chat = model()
whole = chat.invoke("hi")
seen["whole"] = whole.content
seen["finish"] = whole.response_metadata["finish_reason"]
seen["usage"] = [whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]]

text = ""
for chunk in model(stream_usage=True).stream("hi"):
    text += chunk.content
    if chunk.usage_metadata:
        seen["stream_usage"] = [chunk.usage_metadata["input_tokens"], chunk.usage_metadata["output_tokens"]]
seen["stream"] = text

tooled = chat.bind_tools([weather])
turns = [HumanMessage("hi")]
answer = tooled.invoke(turns)
call = answer.tool_calls[0]
seen["call"] = [call["id"], call["name"], call["args"]]
turns += [answer, ToolMessage("rain, 9 °C", tool_call_id=call["id"])]
seen["after_tools"] = tooled.invoke(turns).content

try:
    model(model=os.environ["MODEL"] + "x").invoke("hi")
except BadRequestError as error:
    seen["unknown_model"] = error.message
try:
    model(api_key="sk-wrong").invoke("hi")
except AuthenticationError as error:
    seen["wrong_key"] = error.status_code

print(json.dumps(seen))
