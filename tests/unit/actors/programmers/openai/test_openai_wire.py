"""What is not even HTTP, or breaks it: a lost connection, retried, and one line in the end."""

import asyncio
import gzip

import pytest

from kopt.errors import ProgrammerUnavailable

pytestmark = pytest.mark.filterwarnings(
    "error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning"
)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
RESPONSES = {
    "nothing": b"",
    "no_http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "binary": bytes(range(256)) * 8,
    "endless_header": OK + b"X-Long: " + b"x" * 200_000,
    "broken_length": OK + b"Content-Length: many\r\n\r\n{}",
    "broken_chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "short_chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{}\r\n",
    "broken_gzip": OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
    "short_gzip": OK
    + b"Content-Encoding: gzip\r\nContent-Length: 500\r\n\r\n"
    + gzip.compress(b"{}" * 500)[:12],
}


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_breaks_http_is_a_lost_connection(bench, run, name, stream):
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(RESPONSES[name])
        writer.close()

    async def scenario():
        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        url = f"http://{host}:{port}/v1"
        async with server, bench(base_url=url, model="m", max_retries=1, stream=stream) as it:
            with pytest.raises(ProgrammerUnavailable) as caught:
                await it.write()
        return str(caught.value)

    line = run(scenario())
    assert "connection lost (" in line
    assert line.endswith("(tried 2 times)")
    assert "\n" not in line


def test_a_redirect_in_circles_is_one_line(bench, run):
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Go\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n")
        writer.write(b"Connection: close\r\n\r\n")
        writer.close()

    async def scenario():
        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        url = f"http://{host}:{port}/v1"
        async with server, bench(base_url=url, model="m", max_retries=0) as it:
            with pytest.raises(ProgrammerUnavailable, match="redirect"):
                await it.write()

    run(scenario())
