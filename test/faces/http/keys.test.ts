import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createAuthenticate, createLastUsed, toCaller } from "#faces/http/keys/authenticate.ts";
import { createSecret } from "#lib/secret.ts";
import { createAccessKey, hashAccessKey, isSameKey } from "#model/access-key.ts";
import { openAdminKey, readExpiry } from "#people/keys/issue-key.ts";
import { issueKey, withdrawKey } from "#test/support/issue-key.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { clearAudit } from "../cli/clear-audit.ts";
import { call, makeKey, startArchive } from "./start-archive.ts";

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.pool.query("truncate api_keys");
  await clearAudit(database);
});

/** Everything that any table holds, as text. */
async function dump(): Promise<string> {
  const tables = await database.pool.query<{ name: string }>(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'public'",
  );
  const parts = await Promise.all(
    tables.rows.map(({ name }) =>
      database.pool.query<{ text: string | null }>(`select string_agg(t::text, ' ') as text from ${name} t`),
    ),
  );
  return parts.map(({ rows }) => rows[0]?.text ?? "").join("\n");
}

async function audit() {
  const { rows } = await database.pool.query(
    "select actor, action, subject, details from audit_entries order by id",
  );
  return rows as { actor: string; action: string; subject: string; details: Record<string, unknown> }[];
}

test("S1: a key has 192 random bits, and the database holds none of it but its id", async () => {
  const { key, keyId } = await makeKey(database, "admin");
  const { url } = await startArchive(database.url);

  expect(key).toMatch(/^lw_[0-9a-f]{12}_[0-9a-f]{48}$/);
  expect((await call(url, "/api/v1/keys", key)).status).toBe(200);
  const everything = await dump();
  expect(everything).toContain(keyId);
  expect(everything).not.toContain(key.split("_")[2]);
});

test("S1: a key that is revoked on one replica fails on the next request of every one", async () => {
  const [one, other] = [await startArchive(database.url), await startArchive(database.url)];
  const admin = await makeKey(database, "admin");
  const { key, keyId } = await makeKey(database, "admin");
  const statuses = () =>
    Promise.all([one, other].map(async ({ url }) => (await call(url, "/api/v1/keys", key)).status));
  expect(await statuses()).toEqual([200, 200]);

  expect((await call(one.url, `/api/v1/keys/${keyId}`, admin.key, { method: "DELETE" })).status).toBe(200);

  expect(await statuses()).toEqual([401, 401]);
  expect((await call(other.url, `/api/v1/keys/${keyId}`, admin.key, { method: "DELETE" })).status).toBe(200);
  expect((await audit()).filter(({ action }) => action === "key.revoked")).toMatchObject([
    { actor: `key ${admin.keyId} (admin)`, subject: `key ${keyId}` },
  ]);
});

test("a key is good until its expiry, by the database's clock", async () => {
  const { url } = await startArchive(database.url);
  const { key } = await makeKey(database, "admin");
  await database.pool.query("update api_keys set expires_at = now() + interval '1 hour'");
  expect((await call(url, "/api/v1/keys", key)).status).toBe(200);
  await database.pool.query("update api_keys set expires_at = now()");

  expect((await call(url, "/api/v1/keys", key)).status).toBe(401);
});

test("S1: a key is replaced by making a second one: both are good until the first is revoked", async () => {
  const { url } = await startArchive(database.url);
  const [first, second] = [await makeKey(database, "reader"), await makeKey(database, "reader")];

  for (const { key } of [first, second]) expect((await call(url, "/metrics", key)).status).toBe(200);
});

test("with any part changed a key is none", async () => {
  const { url } = await startArchive(database.url);
  const { key, keyId } = await makeKey(database, "admin");
  const other = await makeKey(database, "admin");
  const changed = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");

  for (const wrong of [changed, key.toUpperCase(), `${key}0`, key.replace(keyId, other.keyId), keyId])
    expect((await call(url, "/api/v1/keys", wrong)).status).toBe(401);
});

describe("S2", () => {
  const { key, keyId, hash } = createAccessKey();
  const row = {
    keyId,
    keyHash: hash,
    name: "x",
    roles: ["reader"],
    zoneIds: null,
    accounts: null,
    isMasked: false,
    isLive: true,
  };

  test.each([
    ["known", key, true],
    ["unknown", createAccessKey().key, false],
    ["no key at all", "x", false],
    ["empty", "", false],
  ])("one lookup and one comparison are made for a key that is %s", async (_name, given, isGood) => {
    const find = vi.fn(async (id: string) => (id === keyId ? row : null));
    const caller = await createAuthenticate({
      find,
      toCaller: (found) => toCaller(found, []),
      onUsed: () => undefined,
    })(given);

    expect(find).toHaveBeenCalledOnce();
    expect(caller !== null).toBe(isGood);
  });

  test("nothing to compare with is like a wrong key, also for the key whose hash is all zeros", () => {
    expect(isSameKey(key, null)).toBe(false);
    expect(isSameKey(key, Buffer.alloc(32))).toBe(false);
    expect(isSameKey(key, hashAccessKey(key))).toBe(true);
  });
});

test("the last use of a key is noted, once a minute however many replicas see it", async () => {
  const { url } = await startArchive(database.url);
  const { key } = await makeKey(database, "admin");
  const lastUsed = async () => {
    const { rows } = await database.pool.query<{ at: Date | null }>(
      "select last_used_at as at from api_keys",
    );
    return rows[0]?.at?.getTime() ?? null;
  };
  expect(await lastUsed()).toBeNull();
  await call(url, "/api/v1/keys", key);
  await vi.waitFor(async () => expect(await lastUsed()).not.toBeNull());
  const first = await lastUsed();
  const replica = await startArchive(database.url);
  await call(replica.url, "/api/v1/keys", key);
  await call(replica.url, "/api/v1/keys", key);

  expect(await lastUsed()).toBe(first);
});

test("a process asks to note a use once a minute, and again after a failure", async () => {
  let now = 0;
  const touch = vi.fn(async () => undefined as void);
  const errors: unknown[] = [];
  const use = createLastUsed({ touch, clock: () => now, onError: (error) => errors.push(error) });
  use("a");
  now = 59_999;
  use("a");
  expect(touch).toHaveBeenCalledTimes(1);
  now = 60_000;
  touch.mockRejectedValueOnce(new Error("gone"));
  use("a");
  await vi.waitFor(() => expect(errors).toHaveLength(1));
  use("a");

  expect(touch).toHaveBeenCalledTimes(3);
});

describe("GET /apikey", () => {
  async function page(url: string, key: string, query = "") {
    const response = await call(url, `/apikey${query}`, key);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  test("lists the keys that are good in the platform's shape, masked", async () => {
    const { url } = await startArchive(database.url);
    const admin = await makeKey(database, "admin");
    const reader = await makeKey(database, "reader");
    const gone = await makeKey(database, "reader");
    await database.pool.query("update api_keys set revoked_at = now() where key_id = $1", [gone.keyId]);

    expect(await page(url, admin.key)).toEqual({
      status: 200,
      body: {
        Items: [
          { Id: expect.any(Number), Key: `lw_${admin.keyId}_********`, Roles: ["admin"] },
          { Id: expect.any(Number), Key: `lw_${reader.keyId}_********`, Roles: ["reader"] },
        ],
        CurrentPage: 1,
        TotalItems: 2,
        HasMoreItems: false,
      },
    });
  });

  test("pages as the platform does: a page size out of range is moved, a page out of range is refused", async () => {
    const { url } = await startArchive(database.url);
    const { key } = await makeKey(database, "admin");
    for (let made = 1; made < 7; made += 1) await makeKey(database, "reader");
    const sizes = async (query: string) => {
      const { Items, ...rest } = (await page(url, key, query)).body;
      return [(Items as unknown[]).length, rest["CurrentPage"], rest["TotalItems"], rest["HasMoreItems"]];
    };

    expect(await sizes("?page=1&perPage=5")).toEqual([5, 1, 7, true]);
    expect(await sizes("?page=2&perPage=1")).toEqual([2, 2, 7, false]);
    expect(await sizes("?page=2147483647&perPage=1000")).toEqual([0, 2_147_483_647, 7, false]);
    for (const query of ["?page=0", "?page=2147483648", "?page=x", "?perPage=", "?page=1&page=2"])
      expect(await page(url, key, query)).toMatchObject({ status: 400, body: { ErrorKey: "model.invalid" } });
  });

  test("answers a missing or wrong key as the platform does, and a key without the scope as forbidden", async () => {
    const { url } = await startArchive(database.url);
    const { key } = await makeKey(database, "operator");
    const denied = { Message: "Authorization has been denied for this request." };

    expect(await (await call(url, "/apikey")).json()).toEqual(denied);
    expect(await page(url, "wrong")).toEqual({ status: 401, body: denied });
    expect((await page(url, key)).status).toBe(403);
  });
});

describe("/api/v1/keys", () => {
  const create = (url: string, key: string, body: object) =>
    call(url, "/api/v1/keys", key, { method: "POST", body: JSON.stringify(body) });

  test("a key that is made there works at once, and only its making shows it", async () => {
    const { url, lines } = await startArchive(database.url);
    const admin = await makeKey(database, "admin");
    const made = await create(url, admin.key, {
      name: "siem",
      role: "exporter",
      zones: [101],
      masked: true,
      expires: "90d",
    });
    const body = (await made.json()) as { key: string; id: string; expiresAt: string };

    expect(made.status).toBe(201);
    expect(made.headers.get("cache-control")).toBe("no-store");
    expect(body).toMatchObject({
      name: "siem",
      roles: ["exporter"],
      zones: [101],
      masked: true,
      isLive: true,
    });
    expect(Date.parse(body.expiresAt) - Date.now()).toBeGreaterThan(89 * 86_400_000);
    expect((await call(url, "/api/v1/zones", body.key)).status).toBe(200);
    const list = await (await call(url, "/api/v1/keys?limit=1", admin.key)).text();
    expect(list).toContain(body.id);
    expect(list + lines.join("") + (await dump())).not.toContain(body.key.split("_")[2]);
    expect(await audit()).toContainEqual({
      actor: `key ${admin.keyId} (admin)`,
      action: "key.created",
      subject: `key ${body.id}`,
      details: expect.objectContaining({ name: "siem", role: "exporter", zoneIds: [101], isMasked: true }),
    });
  });

  test.each([
    [{ role: "reader" }, "name"],
    [{ name: "a\nb", role: "reader" }, "name"],
    [{ name: "x", role: "root" }, "role"],
    [{ name: "x", role: "admin", zones: [101] }, "role"],
    [{ name: "x", role: "admin", masked: true }, "role"],
    [{ name: "x", role: "reader", zones: [] }, "zones"],
    [{ name: "x", role: "reader", expires: "1y" }, "expires"],
    [{ name: "x", role: "reader", scopes: ["admin"] }, "scopes"],
  ])("a wish such as %j is refused for %s, and nothing is made", async (body, field) => {
    const { url } = await startArchive(database.url);
    const { key } = await makeKey(database, "admin");
    const response = await create(url, key, body);
    const problem = (await response.json()) as { mistakes: { field: string }[] };

    expect(response.status).toBe(400);
    expect(problem.mistakes.map((mistake) => mistake.field)).toContain(field);
    expect((await database.pool.query("select from api_keys")).rowCount).toBe(1);
  });

  async function listPage(url: string, key: string, query: string) {
    const response = await call(url, `/api/v1/keys?${query}`, key);
    const page = (await response.json()) as { items?: { id: string }[]; next?: string | null };
    return { status: response.status, ids: page.items?.map(({ id }) => id) ?? [], next: page.next ?? null };
  }

  test("the list is paged, every key once", async () => {
    const { url } = await startArchive(database.url);
    const { key } = await makeKey(database, "admin");
    for (let made = 1; made < 5; made += 1) await makeKey(database, "reader");
    const first = await listPage(url, key, "limit=2");
    const second = await listPage(url, key, `limit=2&after=${first.next}`);
    const third = await listPage(url, key, `limit=2&after=${second.next}`);

    expect(new Set([...first.ids, ...second.ids, ...third.ids]).size).toBe(5);
    expect(third).toMatchObject({ ids: [expect.any(String)], next: null });
  });

  test("S7: a cursor that was changed, or that of another list, is a 400", async () => {
    const { url } = await startArchive(database.url);
    const { key } = await makeKey(database, "admin");
    await makeKey(database, "reader");
    const { next } = await listPage(url, key, "limit=1");

    expect((await listPage(url, key, `after=${next}`)).status).toBe(200);
    expect((await listPage(url, key, `after=${next}x`)).status).toBe(400);
    expect((await listPage(url, key, `all=true&after=${next}`)).status).toBe(400);
  });
});

describe("the first admin key", () => {
  test("is made once, however many replicas start at the same time", async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => openAdminKey(database, null)));
    const keys = made.filter((key) => key !== null);
    const { url } = await startArchive(database.url);

    expect(keys).toHaveLength(1);
    expect((await call(url, "/apikey", keys[0]?.reveal())).status).toBe(200);
    expect(await openAdminKey(database, null)).toBeNull();
    expect(await audit()).toMatchObject([{ actor: "longwatch start", action: "key.created" }]);
  });

  test("is the one of the configuration where there is one", async () => {
    const { key } = createAccessKey();
    const { url } = await startArchive(database.url);
    await Promise.all([1, 2, 3].map(() => openAdminKey(database, createSecret(key))));

    expect((await call(url, "/apikey", key)).status).toBe(200);
    expect(await audit()).toHaveLength(1);
  });

  test("does not come back by a restart once it is revoked", async () => {
    const { key } = createAccessKey();
    const { url } = await startArchive(database.url);
    await openAdminKey(database, createSecret(key));
    await database.pool.query("update api_keys set revoked_at = now()");
    await openAdminKey(database, createSecret(key));

    expect((await call(url, "/apikey", key)).status).toBe(401);
  });

  test("may not take over the id of another key", async () => {
    const { keyId } = await makeKey(database, "reader");
    const taking = openAdminKey(database, createSecret(`lw_${keyId}_${"0".repeat(32)}`));

    await expect(taking).rejects.toThrow(/LONGWATCH_ADMIN_KEY: \[secret\]: must have an id of its own/);
  });
});

test("a key lasts hours or days, ten years at most, or for ever, and nothing else is a duration", () => {
  expect(["1h", "12h", "3650d", "87600h"].map((text) => readExpiry(text, "reader"))).toEqual(
    [1, 12, 87_600, 87_600].map((hours) => hours * 3_600_000),
  );
  expect(readExpiry("never", "admin")).toBeNull();
  for (const none of ["0h", "0d", "3651d", "87601h", "-1d", "1.5h", "1m", "1 h", "h", "", "١h"])
    expect(readExpiry(none, "reader")).toBeUndefined();
});

test("S1: a key without a wish for its end is good for 90 days with the role admin, else until it is revoked", async () => {
  const { url } = await startArchive(database.url);
  const admin = await makeKey(database, "admin");
  const expiryOf = async (body: object) => {
    const answer = await call(url, "/api/v1/keys", admin.key, { method: "POST", body: JSON.stringify(body) });
    const { expiresAt } = (await answer.json()) as { expiresAt: string | null };
    return expiresAt === null ? null : Math.round((Date.parse(expiresAt) - Date.now()) / 86_400_000);
  };
  expect(await expiryOf({ name: "x", role: "admin" })).toBe(90);
  expect(await expiryOf({ name: "x", role: "operator" })).toBeNull();
  expect(await expiryOf({ name: "x", role: "admin", expires: "never" })).toBeNull();
  expect(await expiryOf({ name: "x", role: "admin", expires: null })).toBeNull();
  await database.pool.query("truncate api_keys");
  await openAdminKey(database, null);
  const { rows } = await database.pool.query<{ days: number }>(
    "select round(extract(epoch from expires_at - now()) / 86400)::int as days from api_keys",
  );
  expect(rows).toEqual([{ days: 90 }]);
});

test("S1: a session alone creates no key, and with the key entered again it does", async () => {
  const { url } = await startArchive(database.url);
  const admin = await makeKey(database, "admin");
  const answer = await call(url, "/session", undefined, {
    method: "POST",
    body: JSON.stringify({ key: admin.key }),
  });
  const { pageToken } = (await answer.json()) as { pageToken: string };
  const session = {
    cookie: (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "",
    "x-page-token": pageToken,
    "sec-fetch-site": "same-origin",
  };
  const create = (key?: string) =>
    call(url, "/api/v1/keys", key, {
      method: "POST",
      body: JSON.stringify({ name: "x", role: "reader" }),
      headers: session,
    });
  expect((await call(url, "/api/v1/keys", undefined, { headers: session })).status).toBe(200);
  const refused = await create();
  expect([refused.status, await refused.json()]).toMatchObject([
    403,
    { type: "urn:longwatch:problem:key-needed" },
  ]);
  expect((await create(`${admin.key}x`)).status).toBe(401);
  expect((await create(admin.key)).status).toBe(201);
});

test("S1: a key that ends with its parent expires no later, and is revoked with it, also as a grandchild", async () => {
  const { url } = await startArchive(database.url);
  const admin = await makeKey(database, "admin");
  const create = async (key: string, more: object) => {
    const body = JSON.stringify({ name: "x", role: "admin", expires: "30d", ...more });
    return (await (await call(url, "/api/v1/keys", key, { method: "POST", body })).json()) as {
      key: string;
      id: string;
      expiresAt: string;
      endsWith: string | null;
    };
  };
  const parent = await create(admin.key, { expires: "2d" });
  const child = await create(parent.key, { endsWithParent: true });
  const grandchild = await create(child.key, { endsWithParent: true, role: "reader", expires: "never" });
  const confirmed = await create(parent.key, {});
  expect(child).toMatchObject({ endsWith: parent.id, expiresAt: parent.expiresAt });
  expect(grandchild).toMatchObject({ endsWith: child.id, expiresAt: parent.expiresAt });
  expect(confirmed.endsWith).toBeNull();

  expect((await call(url, `/api/v1/keys/${parent.id}`, admin.key, { method: "DELETE" })).status).toBe(200);
  const statuses = [];
  for (const { key } of [parent, child, grandchild, confirmed])
    statuses.push((await call(url, "/api/v1/zones", key)).status);
  expect(statuses).toEqual([401, 401, 401, 200]);
  expect((await audit()).filter(({ action }) => action === "key.revoked")).toMatchObject([
    { subject: `key ${parent.id}`, details: {} },
    { subject: `key ${child.id}`, details: { endedWith: `key ${parent.id}` } },
    { subject: `key ${grandchild.id}`, details: { endedWith: `key ${parent.id}` } },
  ]);
});

test("a key that is created while its parent is revoked is revoked", async () => {
  const parent = await makeKey(database, "admin");
  const wanted = {
    name: "x",
    role: "reader",
    zoneIds: null,
    isMasked: false,
    expiresInMs: null,
    parentKeyId: parent.keyId,
  } as const;
  for (let n = 0; n < 5; n++) await issueKey(database, wanted, "test");
  await Promise.all([
    withdrawKey(database, parent.keyId, "test"),
    ...Array.from({ length: 5 }, () => issueKey(database, wanted, "test")),
  ]);
  await issueKey(database, wanted, "test");
  const { rows } = await database.pool.query("select from api_keys where revoked_at is null");
  expect(rows).toEqual([]);
});
