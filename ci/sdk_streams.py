#!/usr/bin/env python3
"""Streams from `denom serve` with the vendors' own SDKs, and compares what they make of it.

    sdk_streams.py DENOM

DENOM is the binary to start. It needs the packages of ci/sdk-requirements.txt. A line a case is printed; the exit
code is 1 if any case differs from what its script says.
"""

import json
import subprocess
import sys
import traceback
from dataclasses import dataclass

import anthropic
import google.genai
import ollama
import openai
from google.genai import errors as genai_errors
from google.genai import types as genai_types

TOKENS = 8
PROMPT = "say something short"
KEY = "sim-key"
SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass
class Got:
    """What an SDK made of one answer."""

    text: str = ""
    reasoning: str = ""
    tool: str | None = None
    arguments: dict | None = None
    finish: str | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    error: str | None = None


def words(text):
    """The tokens of a text, each without the part that names the request."""
    assert len(text) % 8 == 0, f"{len(text)} characters are no whole tokens: {text!r}"
    return [text[at : at + 8][1:5] for at in range(0, len(text), 8)]


def numbered(first, last):
    def sign(number):
        return "".join(SIGNS[number // 36**place % 36] for place in (3, 2, 1, 0))

    return [sign(number) for number in range(first, last)]


# --- OpenAI


class OpenaiChat:
    name = "openai chat"
    scripts = ("normal", "reason", "tool", "miderror", "keepalives", "spec4", "crlf", "nousage")
    finish = {"length": "length", "tool": "tool_calls"}

    def __init__(self, url):
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def whole(self, model):
        answer = self.client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": PROMPT}], max_completion_tokens=TOKENS
        )
        choice = answer.choices[0]
        return Got(text=choice.message.content, finish=choice.finish_reason, output_tokens=answer.usage.completion_tokens)

    def stream(self, model):
        got, arguments = Got(), ""
        chunks = self.client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": PROMPT}],
            max_completion_tokens=TOKENS,
            stream=True,
            stream_options={"include_usage": True},
        )
        try:
            for chunk in chunks:
                for choice in chunk.choices:
                    got.text += choice.delta.content or ""
                    got.reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                    for call in choice.delta.tool_calls or []:
                        got.tool = call.function.name or got.tool
                        arguments += call.function.arguments or ""
                    got.finish = choice.finish_reason or got.finish
                if chunk.usage:
                    got.output_tokens = chunk.usage.completion_tokens
                    details = chunk.usage.completion_tokens_details
                    got.reasoning_tokens = details.reasoning_tokens if details else None
        except openai.APIError as error:
            got.error = str(error)
        got.arguments = json.loads(arguments) if arguments else None
        return got


class OpenaiCompletions:
    name = "openai completions"
    scripts = ("normal", "miderror", "keepalives", "spec4")
    finish = {"length": "length"}

    def __init__(self, url):
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def whole(self, model):
        answer = self.client.completions.create(model=model, prompt=PROMPT, max_tokens=TOKENS)
        choice = answer.choices[0]
        return Got(text=choice.text, finish=choice.finish_reason, output_tokens=answer.usage.completion_tokens)

    def stream(self, model):
        got = Got()
        chunks = self.client.completions.create(
            model=model, prompt=PROMPT, max_tokens=TOKENS, stream=True, stream_options={"include_usage": True}
        )
        try:
            for chunk in chunks:
                for choice in chunk.choices:
                    got.text += choice.text
                    got.finish = choice.finish_reason or got.finish
                if chunk.usage:
                    got.output_tokens = chunk.usage.completion_tokens
        except openai.APIError as error:
            got.error = str(error)
        return got


class OpenaiResponses:
    name = "openai responses"
    scripts = ("normal", "reason", "reasoning-summary", "tool", "miderror", "keepalives", "spec4")
    finish = {"length": "incomplete", "tool": "completed"}

    def __init__(self, url):
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def whole(self, model):
        answer = self.client.responses.create(model=model, input=PROMPT, max_output_tokens=TOKENS)
        return Got(text=answer.output_text, finish=answer.status, output_tokens=answer.usage.output_tokens)

    def stream(self, model):
        got, numbers = Got(), []
        with self.client.responses.stream(model=model, input=PROMPT, max_output_tokens=TOKENS) as events:
            for event in events:
                numbers.append(event.sequence_number)
                if event.type == "response.output_text.delta":
                    got.text += event.delta
                elif event.type in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
                    got.reasoning += event.delta
                elif event.type == "error":
                    got.error = event.message
                elif event.type in ("response.completed", "response.incomplete"):
                    self.finished(got, event.response)
        assert numbers == list(range(len(numbers))), f"the numbers are {numbers}"
        return got

    def finished(self, got, response):
        got.finish = response.status
        got.output_tokens = response.usage.output_tokens
        got.reasoning_tokens = response.usage.output_tokens_details.reasoning_tokens
        assert response.output_text == got.text, "the last event repeats the text"
        for item in response.output:
            if item.type == "function_call":
                got.tool, got.arguments = item.name, json.loads(item.arguments)


# --- Anthropic


class AnthropicMessages:
    name = "anthropic messages"
    scripts = ("normal", "reason", "tool", "miderror", "keepalives", "spec4")
    finish = {"length": "max_tokens", "tool": "tool_use"}

    def __init__(self, url):
        self.client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)

    def request(self, model):
        return {"model": model, "max_tokens": TOKENS, "messages": [{"role": "user", "content": PROMPT}]}

    def whole(self, model):
        answer = self.client.messages.create(**self.request(model))
        return Got(
            text=answer.content[0].text, finish=answer.stop_reason, output_tokens=answer.usage.output_tokens
        )

    def stream(self, model):
        got = Got()
        try:
            with self.client.messages.stream(**self.request(model)) as events:
                for event in events:
                    if event.type == "text":
                        got.text += event.text
                    elif event.type == "thinking":
                        got.reasoning += event.thinking
                message = events.get_final_message()
        except anthropic.APIStatusError as error:
            got.error = str(error)
            return got
        got.finish, got.output_tokens = message.stop_reason, message.usage.output_tokens
        for block in message.content:
            if block.type == "tool_use":
                got.tool, got.arguments = block.name, block.input
        return got


# --- Gemini


class Gemini:
    # Its parser takes a comment for data, so no keepalives here.
    name = "gemini"
    scripts = ("normal", "reason", "tool", "miderror", "spec4")
    finish = {"length": "MAX_TOKENS", "tool": "STOP"}

    def __init__(self, url):
        self.client = google.genai.Client(api_key=KEY, http_options=genai_types.HttpOptions(base_url=url))
        self.config = genai_types.GenerateContentConfig(max_output_tokens=TOKENS)

    def whole(self, model):
        answer = self.client.models.generate_content(model=model, contents=PROMPT, config=self.config)
        got = Got()
        self.chunk(got, answer)
        return got

    def stream(self, model):
        got = Got()
        try:
            for chunk in self.client.models.generate_content_stream(model=model, contents=PROMPT, config=self.config):
                self.chunk(got, chunk)
        except genai_errors.APIError as error:
            got.error = str(error)
        return got

    def chunk(self, got, chunk):
        for candidate in chunk.candidates or []:
            for part in (candidate.content and candidate.content.parts) or []:
                if part.function_call:
                    got.tool, got.arguments = part.function_call.name, part.function_call.args
                elif part.thought:
                    got.reasoning += part.text or ""
                else:
                    got.text += part.text or ""
            got.finish = candidate.finish_reason.value if candidate.finish_reason else got.finish
        usage = chunk.usage_metadata
        if usage:
            got.reasoning_tokens = usage.thoughts_token_count
            got.output_tokens = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)


# --- Ollama


class Ollama:
    def __init__(self, url):
        self.client = ollama.Client(host=url)

    def stream(self, model):
        got = Got()
        try:
            for chunk in self.ask(model, True):
                self.chunk(got, chunk)
        except ollama.ResponseError as error:
            got.error = str(error)
        return got

    def whole(self, model):
        got = Got()
        self.chunk(got, self.ask(model, False))
        return got

    def ended(self, got, chunk):
        if chunk.done:
            got.finish, got.output_tokens = chunk.done_reason, chunk.eval_count
            assert chunk.total_duration >= chunk.eval_duration + chunk.prompt_eval_duration


class OllamaChat(Ollama):
    name = "ollama chat"
    scripts = ("normal", "reason", "tool", "miderror", "spec4")
    finish = {"length": "length", "tool": "stop"}

    def ask(self, model, stream):
        messages = [{"role": "user", "content": PROMPT}]
        return self.client.chat(model=model, messages=messages, stream=stream, options={"num_predict": TOKENS})

    def chunk(self, got, chunk):
        got.text += chunk.message.content or ""
        got.reasoning += chunk.message.thinking or ""
        for call in chunk.message.tool_calls or []:
            got.tool, got.arguments = call.function.name, dict(call.function.arguments)
        self.ended(got, chunk)


class OllamaGenerate(Ollama):
    name = "ollama generate"
    scripts = ("normal", "reason", "miderror", "spec4")
    finish = {"length": "length"}

    def ask(self, model, stream):
        return self.client.generate(model=model, prompt=PROMPT, stream=stream, options={"num_predict": TOKENS})

    def chunk(self, got, chunk):
        got.text += chunk.response or ""
        got.reasoning += chunk.thinking or ""
        self.ended(got, chunk)


APIS = (OpenaiChat, OpenaiCompletions, OpenaiResponses, AnthropicMessages, Gemini, OllamaChat, OllamaGenerate)

# --- what each script must come to


def check(api, script, got):
    """Raises where an answer is not what the script says."""
    if script == "miderror":
        assert got.error and "the engine stopped" in got.error, f"no error was raised: {got}"
        assert words(got.text) == numbered(0, TOKENS)
        return
    assert got.error is None, got.error
    reasoned = {"reason": (0, 6), "reasoning-summary": (0, 1)}.get(script, (0, 0))
    answered = {"reason": (6, 8), "reasoning-summary": (6, 8), "tool": (0, 0)}.get(script, (0, TOKENS))
    assert words(got.reasoning) == numbered(*reasoned), f"reasoning is {got.reasoning!r}"
    assert words(got.text) == numbered(*answered), f"text is {got.text!r}"
    counted = None if script == "nousage" else TOKENS
    assert got.output_tokens == counted, f"{got.output_tokens} output tokens"
    if reasoned[1] and api.name in ("openai chat", "openai responses", "gemini"):
        assert got.reasoning_tokens == 6, f"{got.reasoning_tokens} reasoning tokens"
    if script == "tool":
        assert got.tool == "note", got.tool
        assert words(got.arguments["text"]) == numbered(0, TOKENS), got.arguments
        assert got.finish == api.finish["tool"], got.finish
    else:
        assert got.finish == api.finish["length"], got.finish


def cases(url):
    for make in APIS:
        api = make(url)
        for script in api.scripts:
            yield f"{api.name}: {script}", api, script, api.stream
        yield f"{api.name}: normal, not streamed", api, "normal", api.whole


def lists(url):
    """The lists of models, each by its own SDK."""
    yield "openai models", [m.id for m in openai.OpenAI(base_url=f"{url}/v1", api_key=KEY).models.list()]
    yield "anthropic models", [m.id for m in anthropic.Anthropic(base_url=url, api_key=KEY).models.list()]
    yield "ollama models", [m.model for m in ollama.Client(host=url).list().models]
    client = google.genai.Client(api_key=KEY, http_options=genai_types.HttpOptions(base_url=url))
    yield "gemini models", [m.name.removeprefix("models/") for m in client.models.list()]


def run(url):
    failed = 0
    for name, api, script, ask in cases(url):
        try:
            check(api, script, ask(script))
            print(f"ok      {name}")
        except Exception:
            failed += 1
            print(f"FAILED  {name}")
            traceback.print_exc()
    for name, models in lists(url):
        ok = {"normal", "miderror", "http429"} <= set(models)
        failed += not ok
        print(f"{'ok    ' if ok else 'FAILED'}  {name}: {len(models)}")
    return failed


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    server = subprocess.Popen([sys.argv[1], "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split("/v1 ")[0]
        assert url.startswith("http://"), f"the server said {url!r}"
        failed = run(url)
    finally:
        server.terminate()
        server.wait(10)
    print(f"{failed} differ" if failed else "all as the scripts say")
    sys.exit(1 if failed else 0)


main()
