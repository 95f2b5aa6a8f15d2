import { expect, test } from "vitest";
import { startHttp } from "./start-http.ts";

interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly info: { readonly description: string };
}

/** The addresses that the examples of a document name: of its servers, and of the command in its description. */
function addressesIn({ servers, info }: Document): (string | undefined)[] {
  const [, shown] = /export LONGWATCH=(\S+) KEY=/.exec(info.description) ?? [];
  return [...servers.map(({ url }) => url), shown];
}

test("the examples in /docs name the address that the page was served from", async () => {
  const { app, url } = await startHttp({ ownHosts: ["waf.example"] });
  // The page reads the document from here.
  const answer = await fetch(`${url}/docs/json`);
  expect(answer.url).toBe(`${url}/openapi.json`);
  expect(addressesIn((await answer.json()) as Document)).toEqual([url, url]);
  const ask = async (host: string) =>
    addressesIn((await app.inject({ url: "/openapi.json", headers: { host } })).json());
  expect(await ask("waf.example:8443")).toEqual(Array(2).fill("http://waf.example:8443"));
  expect(await ask("[2001:db8::1]:8080")).toEqual(Array(2).fill("http://[2001:db8::1]:8080"));
});

test("a host that a shell or a browser could read as more than an address is not shown", async () => {
  const { app } = await startHttp();
  for (const host of ["a;reboot", "$(id)", "<img>", "a b", "x'y", "a/b"]) {
    const document: Document = (await app.inject({ url: "/openapi.json", headers: { host } })).json();
    expect(addressesIn(document)).toEqual(Array(2).fill("http://127.0.0.1:8080"));
  }
});

test("behind a trusted proxy the address is the one that the proxy was asked for", async () => {
  const { app } = await startHttp({ trustedProxies: ["127.0.0.1"], ownHosts: ["waf.example"] });
  const headers = { host: "inner:8080", "x-forwarded-host": "waf.example", "x-forwarded-proto": "https" };
  const document: Document = (await app.inject({ url: "/openapi.json", headers })).json();
  expect(addressesIn(document)).toEqual(Array(2).fill("https://waf.example"));
});
