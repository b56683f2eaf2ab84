#!/usr/bin/python3
"""aiohttp: aiohttp_client.py SPEC"""
import asyncio
import os

import aiohttp
import yarl

import common


async def talk(session, url, sizes, seen):
    async with session.ws_connect(url) as c:
        seen["status"] = 101
        for n in sizes:
            data = os.urandom(n).hex()[:n]
            await c.send_str(data)
            if await c.receive_str(timeout=20) != data:
                raise ValueError("a message of %d bytes came back as another" % n)
        await c.close()


async def take(session, host, step, seen):
    url = yarl.URL("http://%s%s" % (host, step["target"]), encoded=True)
    if step.get("ws"):
        await talk(session, url, step["ws"], seen)
        return
    body = common.body(step)
    headers = [tuple(f) for f in step["headers"]]
    if step.get("close"):
        headers.append(("Connection", "close"))
    if body is not None and step.get("chunked"):
        async def pieces(all_of_it=body):
            for i in range(0, len(all_of_it), 50000):
                yield all_of_it[i:i + 50000]
        body = pieces()
    async with session.request(step["method"], url, headers=headers, data=body, allow_redirects=bool(step.get("follow")),
                               expect100=bool(step.get("expect"))) as a:
        seen.update(status=a.status, headers=[(n.decode("latin-1"), v.decode("latin-1")) for n, v in a.raw_headers])
        seen.took(await a.read())


async def one(session, host, step, seen):
    try:
        await take(session, host, step, seen)
        if step.get("expect"):
            seen["interim"] = [100]     # it sends the body after 100 only
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as e:
        seen.failed(e)


async def main():
    spec = common.spec()
    for kind in spec["kinds"]:
        old = any(s.get("http10") for s in kind["steps"])
        seen = [common.Seen(kind, i) for i in range(len(kind["steps"]))]
        async with aiohttp.ClientSession(
                version=aiohttp.HttpVersion10 if old else aiohttp.HttpVersion11, cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=["Content-Type"], timeout=aiohttp.ClientTimeout(20)) as session:
            calls = [one(session, spec["host"], *a) for a in zip(kind["steps"], seen)]
            if kind["parallel"]:
                await asyncio.gather(*calls)
            else:
                for call in calls:
                    await call
        for s in seen:
            s.tell()


asyncio.run(main())
