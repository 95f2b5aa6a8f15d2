import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { bodyOf, call, openEmulator, send } from "./support.ts";

interface Described {
  readonly apps: { id: string; volumes: { id: string; instances: { id: string; attached: boolean }[] }[] }[];
  readonly pullZones: { id: number; hostnames: string[] }[];
  readonly dnsZones: string[];
}

const open = () => openEmulator({ historyHours: 0 });
const describe = (emulator: Emulator) => bodyOf<Described>(call(emulator, "/_emulator"));

const container = {
  name: "worker",
  imageName: "worker",
  imageNamespace: "shop",
  imageTag: "1.0.0",
  imageRegistryId: "7",
  imagePullPolicy: "Always",
  endpoints: [
    {
      displayName: "Main",
      cdn: { isSslEnabled: true, pullZoneId: 9, portMappings: [{ containerPort: 80, protocols: ["Tcp"] }] },
      anycast: null,
    },
  ],
  environmentVariables: [{ name: "A", value: "1" }],
};
const application = {
  name: "Shop two",
  autoScaling: { min: 1, max: 2 },
  regionSettings: { allowedRegionIds: ["DE"] },
};

async function appOf(emulator: Emulator) {
  const [app] = (await describe(emulator)).apps;
  if (app === undefined) throw new Error("the emulator holds no application");
  return app;
}

test("the description has exactly the promised members", async () => {
  const emulator = await openEmulator({ historyHours: 0.5 });
  const body = await bodyOf(fetch(`${emulator.url}/_emulator`));
  expect(Object.keys(body)).toEqual([
    "accessKey",
    "now",
    "shieldZones",
    "apps",
    "pullZones",
    "dnsZones",
    "faults",
  ]);
  expect(body).toMatchObject({
    accessKey: emulator.accessKey,
    now: emulator.now(),
    shieldZones: [
      { id: 101, events: expect.any(Number), rules: expect.arrayContaining(["930130"]) },
      { id: 102, events: expect.any(Number), rules: expect.arrayContaining(["930130"]) },
    ],
  });
});

test("keys are paged, sizes are moved into 5 to 1000, pages below 1 are refused", async () => {
  const emulator = await open();
  const keys = (query: string) =>
    bodyOf<{
      Items: { Id: number; Key: string; Roles: string[] }[];
      CurrentPage: number;
      TotalItems: number;
      HasMoreItems: boolean;
    }>(call(emulator, `/apikey${query}`));
  const all = await keys("");
  expect(all).toMatchObject({ CurrentPage: 1, TotalItems: 12, HasMoreItems: false });
  expect(all.Items[0]).toEqual({ Id: 2000, Key: emulator.accessKey, Roles: ["User", "UserApi"] });
  expect(all.Items[1]?.Key).toHaveLength(72);
  expect((await keys("?page=1&perPage=2")).Items).toEqual(all.Items.slice(0, 5));
  const third = await keys("?page=3&perPage=5");
  expect([third.Items, third.HasMoreItems]).toEqual([all.Items.slice(10), false]);
  for (const query of ["?page=0", "?page=x", "?perPage=many"]) {
    const refused = await call(emulator, `/apikey${query}`);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      ErrorKey: "model.invalid",
      Field: expect.stringMatching(/page/i),
      Message: expect.any(String),
    });
  }
  const other = all.Items[3]?.Key ?? "";
  expect((await call(emulator, "/apikey", { headers: { AccessKey: other } })).status).toBe(200);
});

test.each([
  ["GET", "/apikey", { Message: "Authorization has been denied for this request." }],
  [
    "POST",
    "/pullzone/5101/updatePrivateKeyType",
    { Message: "Authorization has been denied for this request." },
  ],
  ["POST", "/dnszone/checkavailability", { Message: "Authorization has been denied for this request." }],
  ["POST", "/mc/apps/x/containers", { status: 401, type: expect.any(String), instance: "/v3/apps/x" }],
  ["PUT", "/mc/apps/x", { status: 401, type: expect.any(String) }],
  ["DELETE", "/mc/apps/x/volumes/y", { status: 401, type: expect.any(String) }],
  ["POST", "/shield/event-logs/101/search", { status: 401, title: "Unauthorized" }],
  ["POST", "/shield/event-logs/101/export", { status: 401, title: "Unauthorized" }],
  ["GET", "/shield/event-logs/101/11-20-2026", { status: 401, title: "Unauthorized" }],
  ["GET", "/shield/waf/rules/review-triggered/ai-recommendation/101/942100", { statusCode: 401 }],
  ["GET", "/shield/metrics/shield-zone/101/waf-rule/942100", { statusCode: 401 }],
])("%s %s without a key is refused in its area's shape", async (method, path, body) => {
  const emulator = await open();
  const response = await fetch(emulator.url + path, { method });
  expect(response.status).toBe(401);
  expect(await response.json()).toMatchObject(body);
});

test("the key list can refuse with the odd 500, and every answer carries a request id", async () => {
  const emulator = await openEmulator({ historyHours: 0, switches: { apiKeyRefusal: "500" } });
  const response = await fetch(`${emulator.url}/apikey`);
  expect(response.status).toBe(500);
  expect(response.headers.get("cdn-requestid")).toMatch(/^[0-9a-f]{32}$/);
});

test("a hostname's key type changes; pull zone, hostname and type are checked", async () => {
  const emulator = await open();
  const [zone] = (await describe(emulator)).pullZones;
  const change = (id: unknown, body: unknown) =>
    send(emulator, "POST", `/pullzone/${String(id)}/updatePrivateKeyType`, body);
  const done = await change(zone?.id, { Hostname: zone?.hostnames[0], KeyType: 1 });
  expect([done.status, await done.text()]).toEqual([200, ""]);
  expect((await change(zone?.id, { Hostname: zone?.hostnames[0] })).status).toBe(200);
  emulator.setSwitches({ keyTypeStatus: "204" });
  expect((await change(zone?.id, { Hostname: zone?.hostnames[0], KeyType: 0 })).status).toBe(204);
  for (const [id, body, status, field] of [
    [1, { Hostname: "a" }, 404, "Id"],
    [zone?.id, { Hostname: "other.example.test", KeyType: 0 }, 404, "Hostname"],
    [zone?.id, { Hostname: "" }, 400, "Hostname"],
    [zone?.id, { Hostname: zone?.hostnames[0], KeyType: 2 }, 400, "KeyType"],
    [zone?.id, [], 400, ""],
  ] as const) {
    const refused = await change(id, body);
    expect(refused.status).toBe(status);
    expect(await refused.json()).toEqual({
      ErrorKey: expect.any(String),
      Field: field,
      Message: expect.any(String),
    });
  }
});

test("a DNS name is taken or free in any case, and an invalid name is refused", async () => {
  const emulator = await open();
  const [taken = ""] = (await describe(emulator)).dnsZones;
  const check = (name: unknown) => send(emulator, "POST", "/dnszone/checkavailability", { Name: name });
  expect(await bodyOf(check(taken))).toEqual({ Available: false });
  expect(await bodyOf(check(`${taken.toUpperCase()}.`))).toEqual({ Available: false });
  expect(await bodyOf(check("free-name.example"))).toEqual({ Available: true });
  for (const name of ["", null, 5, "no dots", "-a.example", `${"a".repeat(70)}.example`]) {
    const refused = await check(name);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ ErrorKey: "dnsZone.validation", Field: "Name" });
  }
});

test("a container is added with 201 and comes back whole, words in camelCase", async () => {
  const emulator = await open();
  const app = await appOf(emulator);
  const response = await send(emulator, "POST", `/mc/apps/${app.id}/containers`, container);
  expect(response.status).toBe(201);
  expect(await response.json()).toMatchObject({
    id: expect.stringMatching(new RegExp(`^${app.id}-\\w{4}$`)),
    name: "worker",
    imagePullPolicy: "always",
    imageDigest: "",
    image: "shop/worker:1.0.0",
    entryPoint: { command: "", commandArray: [] },
    probes: { startup: null, readiness: null, liveness: null },
    endpoints: [
      {
        displayName: "Main",
        pullZoneId: "9",
        isSslEnabled: true,
        portMappings: [{ containerPort: 80, exposedPort: 80, protocols: ["tcp"] }],
      },
    ],
    volumeMounts: [],
  });
});

test("a container that breaks rules is refused with every field, under the internal path", async () => {
  const emulator = await open();
  const app = await appOf(emulator);
  const bad = {
    ...container,
    name: "",
    imageTag: "a/b",
    imageRegistryId: undefined,
    volumeMounts: [{ name: "d", mountPath: "/a//b" }],
  };
  const response = await send(emulator, "POST", `/mc/apps/${app.id}/containers`, bad);
  expect(response.status).toBe(400);
  const body = await bodyOf<{ errors: { field: string }[] }>(response);
  expect(body).toMatchObject({
    title: "Validation Error",
    status: 400,
    instance: `/v3/apps/${app.id}`,
    id: app.id,
  });
  expect(body.errors.map((error) => error.field).sort()).toEqual([
    "imageRegistryId",
    "imageTag",
    "name",
    "volumeMounts.0.mountPath",
  ]);
  const unknown = await send(emulator, "POST", "/mc/apps/none/containers", container);
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({
    title: "Not Found",
    detail: "Application not found.",
    instance: "/v3/apps/none",
  });
});

test("container errors come as array or string by switch", async () => {
  const emulator = await openEmulator({ historyHours: 0, switches: { containerErrors: "array" } });
  const add = () => bodyOf<unknown>(send(emulator, "POST", "/mc/apps/none/containers", container));
  expect(await add()).toEqual([{ message: "Application not found." }]);
  emulator.setSwitches({ containerErrors: "string" });
  expect(await add()).toBe("Application not found.");
});

test("an application is replaced without runtimeType; unknown ids, bad bounds and shrinking volumes are refused", async () => {
  const emulator = await open();
  const app = await appOf(emulator);
  const put = (body: unknown, id = app.id) => send(emulator, "PUT", `/mc/apps/${id}`, body);
  const volumes = [
    { name: "data", size: 11 },
    { name: "cache", size: 1 },
  ];
  const done = await put({ ...application, volumes, containerTemplates: [container] });
  expect([done.status, await done.json()]).toEqual([200, { id: app.id }]);
  const after = await appOf(emulator);
  expect(after.volumes.map((volume) => volume.id.split("-")[0])).toEqual(["data", "scratch", "cache"]);

  expect((await put({ ...application, volumes: [{ name: "data", size: 5 }] })).status).toBe(422);
  expect((await put({ ...application, containerTemplates: [{ ...container, id: "other" }] })).status).toBe(
    400,
  );
  expect((await put({ ...application, autoScaling: { min: 3, max: 2 } })).status).toBe(400);
  const missing = await bodyOf<{ errors: { field: string; message: string }[] }>(put({ name: "a" }));
  expect(missing.errors).toEqual([
    { field: "autoScaling", message: "autoScaling is required." },
    { field: "regionSettings", message: "regionSettings is required." },
  ]);
  const unknown = await put(application, "none");
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({ type: expect.any(String), status: 404 });
});

test("volume instances are deleted when all are detached, and refused before", async () => {
  const emulator = await open();
  const app = await appOf(emulator);
  const attached = app.volumes.find((volume) => volume.instances.some((instance) => instance.attached));
  const free = app.volumes.find((volume) => volume.instances.every((instance) => !instance.attached));
  const remove = (id = "") => call(emulator, `/mc/apps/${app.id}/volumes/${id}`, { method: "DELETE" });

  const refused = await remove(attached?.id);
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ status: 400, errors: [{ field: "volumeId" }], id: app.id });

  const done = await remove(free?.id);
  expect([done.status, await done.json()]).toEqual([
    200,
    { ids: free?.instances.map((instance) => instance.id) },
  ]);
  expect((await remove(free?.id)).status).toBe(404);
  expect((await remove("none")).status).toBe(404);

  await send(emulator, "POST", `/_emulator/apps/${app.id}/volumes/${attached?.id}`, { attached: false });
  expect((await remove(attached?.id)).status).toBe(200);
});

test("paths that are none are a 404, known paths with another method a 405", async () => {
  const emulator = await open();
  expect((await call(emulator, "/apikeys")).status).toBe(404);
  const wrong = await call(emulator, "/apikey", { method: "POST" });
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

/** The container operations take the three media types of the official description, the legacy operations one. */
const JSON_TYPES = ["text/json", "application/*+json", "application/vnd.a+json; charset=utf-8"];

test.each(["application/xml", "text/plain", "", ...JSON_TYPES])(
  "a body sent as %j is refused with 415 by the operations that do not take it, in their shapes",
  async (type) => {
    const emulator = await open();
    const app = await appOf(emulator);
    const [zone] = (await describe(emulator)).pullZones;
    const headers = { "content-type": type };
    const legacy = {
      ErrorKey: expect.any(String),
      Field: "",
      Message: expect.stringContaining("application/json"),
    };
    const extended = { title: "Unsupported Media Type", status: 415, id: app.id };
    for (const [method, path, body, refusal] of [
      [
        "POST",
        `/pullzone/${zone?.id}/updatePrivateKeyType`,
        { Hostname: zone?.hostnames[0], KeyType: 0 },
        legacy,
      ],
      ["POST", "/dnszone/checkavailability", { Name: "free-name.example" }, legacy],
      ["POST", `/mc/apps/${app.id}/containers`, container, extended],
      ["PUT", `/mc/apps/${app.id}`, application, extended],
    ] as const) {
      const response = await call(emulator, path, { method, body: JSON.stringify(body), headers });
      const isTaken = refusal === extended && JSON_TYPES.includes(type);
      expect([path, isTaken ? response.ok : response.status]).toEqual([path, isTaken || 415]);
      if (isTaken) continue;
      expect(await response.json()).toMatchObject(refusal);
      const right = { "content-type": "application/json; charset=utf-8" };
      const taken = await call(emulator, path, { method, body: JSON.stringify(body), headers: right });
      expect([path, taken.ok]).toEqual([path, true]);
    }
  },
);

const DEEP = `{"Name":${"[".repeat(40)}${"]".repeat(40)}}`;
test.each<[name: string, body: string | Buffer<ArrayBuffer>, more: Record<string, string>, status: number]>([
  ["that is nested 40 deep", DEEP, {}, 400],
  ["that is nested 100,000 deep", "[".repeat(100_000) + "]".repeat(100_000), {}, 400],
  ["that is no UTF-8", Buffer.from('{"Name":"caf\xe9.example"}', "latin1"), {}, 400],
  ["that is compressed", gzipSync('{"Name":"a.example"}'), { "content-encoding": "gzip" }, 415],
])("a body %s is refused by every operation that takes one", async (_name, body, more, status) => {
  const emulator = await open();
  const app = await appOf(emulator);
  const headers = { "content-type": "application/json", ...more };
  const [zone] = (await describe(emulator)).pullZones;
  for (const [method, path] of [
    ["POST", `/pullzone/${zone?.id}/updatePrivateKeyType`],
    ["POST", "/dnszone/checkavailability"],
    ["POST", `/mc/apps/${app.id}/containers`],
    ["PUT", `/mc/apps/${app.id}`],
    ["POST", "/shield/event-logs/101/search"],
    ["POST", "/shield/event-logs/101/export"],
  ]) {
    const response = await call(emulator, path ?? "", { method: method ?? "", body, headers });
    expect([path, response.status]).toEqual([path, status]);
  }
});
