import { request } from "node:http";
import { expect, test } from "vitest";
import { startHttp } from "./start-http.ts";

interface Asked {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

/** A request with a Host header that fetch does not let anybody set. */
function ask(port: number, path: string, headers: Record<string, string>): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => (body += text));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    sent.on("error", reject).end();
  });
}

test.each([
  ["127.0.0.1:8080", 200],
  ["[::1]:8080", 200],
  ["192.0.2.1", 200],
  ["localhost:8080", 200],
  ["longwatch.localhost", 200],
  ["longwatch:8080", 200],
  ["longwatch.monitoring.svc.cluster.local", 200],
  ["Waf.Example.com", 200],
  ["waf.example.com.:443", 200],
  ["own.example.net", 200],
  ["rebound.example", 421],
  ["127.0.0.1.rebound.example:8080", 421],
  ["waf.example.com.rebound.example", 421],
  ["localhost.rebound.example", 421],
])("S26: a request without a key to the host %s is answered with %i", async (host, status) => {
  const options = { publicUrl: "https://waf.example.com/longwatch", ownHosts: ["own.example.net"] };
  const { port } = await startHttp(options);
  const answer = await ask(port, "/openapi.json", { host });
  expect(answer.status).toBe(status);
  expect(answer.body.includes("urn:longwatch:problem:unknown-host")).toBe(status === 421);
});

test("S26: probes, and requests with a valid key, are answered under any host", async () => {
  const { port } = await startHttp({
    authenticate: async (key) =>
      key === "valid-key"
        ? {
            keyId: "x",
            name: "x",
            roles: ["reader"],
            scopes: new Set(["read"] as const),
            zoneIds: null,
            masked: false,
          }
        : null,
    areMetricsPublic: false,
  });
  const host = "rebound.example";
  expect((await ask(port, "/livez", { host })).status).toBe(200);
  expect((await ask(port, "/readyz", { host })).status).toBe(200);
  expect((await ask(port, "/metrics", { host, accesskey: "valid-key" })).status).toBe(200);
  expect((await ask(port, "/metrics", { host, authorization: "Bearer valid-key" })).status).toBe(200);
  expect((await ask(port, "/metrics", { host, cookie: "longwatch_session=x" })).status).toBe(421);
  for (const path of ["/openapi.json", "/docs/docs.css", "/", "/no/such/page"]) {
    const valid = await ask(port, path, { host, accesskey: "valid-key" });
    expect(valid.status).toBe((await ask(port, path, { host: "localhost" })).status);
    expect((await ask(port, path, { host, accesskey: "x" })).status).toBe(421);
  }
  const others = [{ accesskey: "" }, { authorization: "Bearer x" }, { authorization: "Basic eDp4" }];
  for (const wrong of others) expect((await ask(port, "/openapi.json", { host, ...wrong })).status).toBe(421);
  expect((await ask(port, "/metrics", { host, accesskey: "x" })).status).toBe(401);
});

test.each([
  ["rebound.example", "localhost", 421],
  ["rebound.example:8080", "waf.example.com", 421],
  ["localhost:8080", "rebound.example", 421],
  ["inner:8080", "waf.example.com", 200],
  ["[2001:db8::1]:8080", "waf.example.com", 200],
  ["waf.example.com:443", "waf.example.com", 200],
])(
  "S26: behind a trusted proxy, the host %s with the forwarded host %s is answered with %i",
  async (host, forwarded, status) => {
    const { port } = await startHttp({ trustedProxies: ["127.0.0.1"], publicUrl: "https://waf.example.com" });
    expect((await ask(port, "/openapi.json", { host, "x-forwarded-host": forwarded })).status).toBe(status);
  },
);

test("S10: an answer through a trusted proxy with TLS keeps the browser on TLS for a year, and no other answer does", async () => {
  const { port } = await startHttp({ trustedProxies: ["127.0.0.1"] });
  const { port: direct } = await startHttp();
  const tls = { host: "localhost", "x-forwarded-proto": "https" };
  const header = "strict-transport-security";
  expect((await ask(port, "/openapi.json", tls)).headers[header]).toBe("max-age=31536000");
  expect((await ask(port, "/openapi.json", { host: "localhost" })).headers[header]).toBeUndefined();
  expect((await ask(direct, "/openapi.json", tls)).headers[header]).toBeUndefined();
});
