import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server as HttpsServer } from "node:https";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type LookupFunction,
  type Server,
} from "node:net";
import { Agent, buildConnector } from "undici";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  guardConnector,
  guardLookup,
  type NetworkPolicy,
  openEndpoint,
} from "#delivery/receivers/endpoint.ts";
import { post } from "#delivery/receivers/post.ts";
import { createSecret } from "#lib/secret.ts";
import { CANARY, failureOf, scriptedLookup } from "./support/receiver.ts";
import { createSelfSigned } from "./support/self-signed.ts";

/** Listens on loopback, counts connections and records their bytes. */
let trap: Server;
let connections = 0;
let bytes = 0;
let port = 0;

beforeEach(async () => {
  connections = 0;
  bytes = 0;
  trap = createTcpServer((socket) => {
    connections += 1;
    socket.on("data", (chunk) => (bytes += chunk.length));
    socket.on("error", () => undefined);
  });
  trap.listen(0, "127.0.0.1");
  await once(trap, "listening");
  port = (trap.address() as AddressInfo).port;
});

afterEach(async () => {
  trap.close();
  await once(trap, "close");
});

function request(timeoutMs = 5_000) {
  const { signal } = new AbortController();
  return { headers: {}, body: "{}", timeoutMs, clock: Date.now, signal };
}

function postTo(url: string, policy: NetworkPolicy): Promise<unknown> {
  return post(openEndpoint("hook", createSecret(url), policy), request());
}

test.each([
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "017700000001",
  "127.0.0.1.",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
])("%s is refused when the channel is set up, and again when it is dialled (F73)", async (host) => {
  const url = `https://${host}:${port}/${CANARY}?${CANARY}`;
  expect(() => openEndpoint("hook", createSecret(url), {})).toThrow(
    /^channel hook: url: \S+ is not a public address/,
  );
  expect(() => openEndpoint("hook", createSecret(url), {})).not.toThrow(CANARY);

  const { dispatcher } = openEndpoint("hook", createSecret("https://example.com/"), {});
  const origin = new URL(url).origin;
  const dialled = dispatcher.request({ origin, path: "/", method: "POST", body: "{}" });

  expect(await failureOf(dialled)).toMatchObject({ code: "ADDRESS_REFUSED", disposition: "give-up" });
  expect(connections).toBe(0);
});

test.each<[string, readonly string[]]>([
  ["loopback", ["127.0.0.1"]],
  ["loopback of IPv6", ["::1"]],
  ["mapped loopback", ["::ffff:127.0.0.1"]],
  ["metadata", ["169.254.169.254"]],
  ["a public and a private address", ["93.184.216.34", "127.0.0.1"]],
  ["nothing", []],
])("a name that resolves to %s is refused before anything is dialled (F73)", async (_what, addresses) => {
  const error = await failureOf(
    postTo(`https://hooks.example:${port}/${CANARY}`, { lookup: scriptedLookup(addresses) }),
  );

  expect(error).toMatchObject({ code: "ADDRESS_REFUSED", disposition: "retry" });
  expect(error.message).not.toContain(CANARY);
  expect(connections).toBe(0);
});

test("the system's own resolver is guarded: localhost is refused", async () => {
  expect(await failureOf(postTo(`https://localhost:${port}/`, {}))).toMatchObject({
    code: "ADDRESS_REFUSED",
  });
  expect(connections).toBe(0);
});

test("a name that turns private between two connections is let through once (F73)", async () => {
  const rebound = guardLookup(scriptedLookup(["93.184.216.34"], ["127.0.0.1"]), false);
  // The answer that was judged is the one that is dialled: net.connect gets it from this very function.
  const ask = (all: boolean) =>
    new Promise((resolve) => {
      rebound("hooks.example", { all }, (error, address) => resolve(error ?? address));
    });

  expect(await ask(true)).toEqual([{ address: "93.184.216.34", family: 4 }]);
  expect(await ask(true)).toMatchObject({ code: "ADDRESS_REFUSED" });
  expect(await ask(false)).toMatchObject({ code: "ADDRESS_REFUSED" });
});

test("a resolver that fails is an endpoint out of reach", async () => {
  const lookup: LookupFunction = (_hostname, _options, callback) => {
    callback(Object.assign(new Error(`SERVFAIL ${CANARY}`), { code: "EAI_AGAIN" }), []);
  };
  const error = await failureOf(postTo(`https://hooks.example:${port}/`, { lookup }));
  expect(error).toMatchObject({ code: "ENDPOINT_UNREACHABLE", disposition: "retry" });
  expect(error.message).toBe(`no answer from hooks.example:${port} (EAI_AGAIN)`);
});

test.each(["http:", "https:"])(
  "over %s a peer that is not who was resolved gets no byte (F73)",
  async (protocol) => {
    // A connector that was checked and then dials elsewhere: what rebinding amounts to when every earlier check was
    // passed.
    const astray = buildConnector({
      lookup: (_hostname, options, callback) => {
        if (options.all === true) callback(null, [{ address: "127.0.0.1", family: 4 }]);
        else callback(null, "127.0.0.1", 4);
      },
    });
    const agent = new Agent({ connect: guardConnector(astray, false) });

    const dialled = agent.request({
      origin: `${protocol}//hooks.example:${port}`,
      path: `/${CANARY}`,
      method: "POST",
    });

    expect(await failureOf(dialled)).toMatchObject({ code: "ADDRESS_REFUSED", disposition: "retry" });
    // The trap has seen the connection once its end has arrived.
    await expect.poll(() => connections).toBe(1);
    await agent.close();
    expect(bytes).toBe(0);
  },
);

test.each([
  ["ftp://example.com/", "must be https"],
  ["http://example.com/", "must be https"],
  ["https://user@example.com/", "must not hold a user"],
  ["https://user:pass@example.com/", "must not hold a user"],
  ["nonsense", "is not a URL"],
  ["https://169.254.169.254/latest/", "is not a public address (metadata)"],
])("%s is refused: %s", (url, rule) => {
  expect(() => openEndpoint("hook", createSecret(url), {})).toThrow(rule);
});

test("every mistake of an address is listed at once", () => {
  const open = () => openEndpoint("hook", createSecret("http://u:p@127.0.0.1/"), {});
  expect(open).toThrow(
    expect.objectContaining({ mistakes: [expect.any(String), expect.any(String), expect.any(String)] }),
  );
});

test("private networks are an opt-in that never includes metadata", () => {
  const open = (url: string) => openEndpoint("hook", createSecret(url), { allowPrivateNetworks: true });
  expect(open("http://10.0.0.7:9000/").origin).toBe("http://10.0.0.7:9000");
  expect(() => open("http://169.254.169.254/")).toThrow("metadata");
  expect(() => open("http://[fd00:ec2::254]/")).toThrow("metadata");
});

test("a redirect is not followed, wherever it leads (F73)", async () => {
  const server = createHttpServer((_request, response) => {
    response.writeHead(307, { location: `http://127.0.0.1:${port}/` }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;

  const error = await failureOf(postTo(`http://127.0.0.1:${address.port}/`, { allowPrivateNetworks: true }));
  server.close();

  expect(error).toMatchObject({ code: "ENDPOINT_REDIRECTED" });
  expect(connections).toBe(0);
});

test("proxies of the environment are ignored", async () => {
  const before = process.env.https_proxy;
  process.env.https_proxy = `http://127.0.0.1:${port}`;
  try {
    const lookup = scriptedLookup(["127.0.0.1"]);
    expect(await failureOf(postTo("https://hooks.example/", { lookup }))).toMatchObject({
      code: "ADDRESS_REFUSED",
    });
  } finally {
    if (before === undefined) delete process.env.https_proxy;
    else process.env.https_proxy = before;
  }
  expect(connections).toBe(0);
});

describe("over TLS", () => {
  const { key, cert } = createSelfSigned("hooks.example");
  let server: HttpsServer;
  let seen: { host: string | undefined; servername: string | false | null | undefined }[] = [];
  let tlsPort = 0;

  beforeEach(async () => {
    seen = [];
    server = createServer({ key, cert }, (incoming, response) => {
      const { servername } = incoming.socket as unknown as { servername: string };
      seen.push({ host: incoming.headers.host, servername });
      incoming.resume().on("end", () => response.writeHead(204).end());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    tlsPort = (server.address() as AddressInfo).port;
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const lookup = scriptedLookup(["127.0.0.1"]);

  test("the handshake over the checked socket names and verifies the host", async () => {
    await postTo(`https://hooks.example:${tlsPort}/`, { allowPrivateNetworks: true, ca: cert, lookup });
    expect(seen).toEqual([{ host: `hooks.example:${tlsPort}`, servername: "hooks.example" }]);
  });

  test.each([
    ["an unknown authority", "hooks.example", undefined],
    ["another name", "other.example", cert],
  ])("a certificate of %s is an endpoint out of reach", async (_what, host, ca) => {
    const policy = { allowPrivateNetworks: true, lookup, ...(ca === undefined ? {} : { ca }) };
    const error = await failureOf(postTo(`https://${host}:${tlsPort}/${CANARY}`, policy));
    expect(error).toMatchObject({ code: "ENDPOINT_UNREACHABLE", disposition: "retry" });
    expect(error.message).not.toContain(CANARY);
    expect(seen).toEqual([]);
  });
});
