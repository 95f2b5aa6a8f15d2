import { expect, test } from "vitest";
import { startHttp } from "./start-http.ts";

test("the examples in /docs name the address that the page was served from", async () => {
  const { app, url } = await startHttp();
  const page = await (await fetch(`${url}/docs`)).text();
  expect(page).toContain(`export LONGWATCH=${url} KEY=`);
  const ask = async (host: string) => (await app.inject({ url: "/docs", headers: { host } })).body;
  expect(await ask("waf.example:8443")).toContain("export LONGWATCH=http://waf.example:8443 KEY=");
  expect(await ask("[2001:db8::1]:8080")).toContain("export LONGWATCH=http://[2001:db8::1]:8080 KEY=");
});

test("a host that a shell or a browser could read as more than an address is not shown", async () => {
  const { app } = await startHttp();
  for (const host of ["a;reboot", "$(id)", "<img>", "a b", "x'y", "a/b"]) {
    const { body } = await app.inject({ url: "/docs", headers: { host } });
    expect(body).toContain("export LONGWATCH=http://127.0.0.1:8080 KEY=");
  }
});

test("behind a trusted proxy the address is the one that the proxy was asked for", async () => {
  const { app } = await startHttp({ trustedProxies: ["127.0.0.1"] });
  const headers = { host: "inner:8080", "x-forwarded-host": "waf.example", "x-forwarded-proto": "https" };
  expect((await app.inject({ url: "/docs", headers })).body).toContain(
    "export LONGWATCH=https://waf.example KEY=",
  );
});
