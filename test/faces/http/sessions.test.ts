import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createSignInLink } from "#people/keys/issue-key.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { call, makeKey, startArchive } from "./start-archive.ts";

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

const SAME = { "sec-fetch-site": "same-origin" };

function post(url: string, body: object, headers: Record<string, string> = {}) {
  return call(url, "/session", undefined, { method: "POST", body: JSON.stringify(body), headers });
}

type Signed = Record<"cookie" | "x-page-token", string>;

/** Both secrets of a new session of this key, as the console sends them. */
async function signIn(url: string, key: string, headers: Record<string, string> = {}): Promise<Signed> {
  return readSigned(await post(url, { key }, headers));
}

async function readSigned(answer: Response): Promise<Signed> {
  expect(answer.status).toBe(200);
  const { pageToken } = (await answer.json()) as { pageToken: string };
  const cookie = (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
  return { cookie, "x-page-token": pageToken };
}

function get(url: string, path: string, signed: Partial<Signed>, init: RequestInit = {}) {
  return call(url, path, undefined, { ...init, headers: { ...signed, ...(init.headers as object) } });
}

const makeLink = (key: string | null = null) =>
  createSignInLink(database, { url: "http://here.example/", key, actor: "test" });

async function linkToken(key: string): Promise<string> {
  const made = await makeLink(key);
  if (made.kind !== "made") throw new Error(made.kind);
  expect(made.link.reveal()).toMatch(/^http:\/\/here\.example\/sign-in#[\w-]{43}$/);
  return made.link.reveal().split("#")[1] ?? "";
}

test("a session has the rights, the zones and the masking of its key, and the cookie is for this site only", async () => {
  const actions = { stopped: ["tarpit"], through: [] };
  const { url } = await startArchive(database.url, { actions });
  const { key, keyId } = await makeKey(database, "reader", { name: "desk", zoneIds: [101], isMasked: true });
  const answer = await post(url, { key }, SAME);
  const cookie = answer.headers.get("set-cookie") ?? "";

  expect(cookie).toMatch(/^longwatch_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/);
  const sent = await readSigned(answer);
  const info = (await (await get(url, "/session", sent)).json()) as Record<string, unknown>;
  expect(info).toMatchObject({
    keyName: "desk",
    keyId,
    roles: ["reader"],
    zones: [101],
    maskedAddresses: true,
    actions,
  });
  const left = Date.parse(String(info["expiresAt"])) - Date.now();
  expect(left / 3_600_000).toBeCloseTo(12, 1);
  expect((await get(url, "/api/v1/trends?zone=102", sent)).status).toBe(403);
  expect((await get(url, "/api/v1/keys", sent)).status).toBe(403);
  expect((await get(url, "/api/v1/alerts?zone=101", sent)).status).toBe(200);
});

test("behind a trusted proxy with TLS the cookie is bound to the host, and the plain one is not read", async () => {
  const { url } = await startArchive(database.url, { trustedProxies: ["127.0.0.1"] });
  const { key } = await makeKey(database, "reader");
  const tls = { "x-forwarded-proto": "https" };
  const answer = await post(url, { key }, tls);
  const cookie = answer.headers.get("set-cookie") ?? "";

  expect(cookie).toMatch(/^__Host-longwatch_session=[\w-]{43}; Path=\/; HttpOnly; .*; Secure$/);
  const sent = await readSigned(answer);
  expect((await get(url, "/session", sent, { headers: tls })).status).toBe(200);
  const plain = { ...sent, cookie: sent.cookie.replace("__Host-", "") };
  expect((await get(url, "/session", plain, { headers: tls })).status).toBe(401);
});

test("a link signs in once: of many at the same moment one succeeds, and an expired one none", async () => {
  const { url, lines } = await startArchive(database.url);
  const { keyId } = await makeKey(database, "operator");
  const token = await linkToken(keyId);
  const statuses = await Promise.all(
    Array.from({ length: 5 }, async () => (await post(url, { token }, SAME)).status),
  );
  expect(statuses.sort((a, b) => a - b)).toEqual([200, 401, 401, 401, 401]);
  const late = await linkToken(keyId);
  await database.pool.query(
    "update sign_in_tokens set expires_at = now() - interval '1 s' where used_at is null",
  );
  const answer = await post(url, { token: late }, SAME);
  expect([answer.status, await answer.json()]).toMatchObject([
    401,
    { type: "urn:longwatch:problem:link-over" },
  ]);
  const { rows } = await database.pool.query("select token_hash::text as hash from sign_in_tokens");
  expect(JSON.stringify([rows, lines])).not.toContain(token);
  expect(lines.join("")).not.toContain(late);
});

test("a sign-in never takes over a token that came with it, and ends the session that did", async () => {
  const { url } = await startArchive(database.url);
  const { key } = await makeKey(database, "reader");
  const planted = { cookie: `longwatch_session=${"x".repeat(43)}`, "x-page-token": "x".repeat(43) };
  const first = await signIn(url, key, planted);
  expect(first.cookie).not.toBe(planted.cookie);
  expect((await get(url, "/session", planted)).status).toBe(401);
  const second = await signIn(url, key, first);
  expect((await get(url, "/session", first)).status).toBe(401);
  expect((await get(url, "/session", second)).status).toBe(200);
});

test.each([
  ["idle for 12 hours", "update sessions set last_used_at = now() - interval '721 minutes'"],
  ["of an admin for 24 hours", "update sessions set created_at = now() - interval '24 hours 1 minute'"],
  ["of a revoked key", "update api_keys set revoked_at = now() where name = 'ending'"],
  ["of an expired key", "update api_keys set expires_at = now() where name = 'ending'"],
])("a session %s is over on every replica", async (_, sql) => {
  const [one, other] = [await startArchive(database.url), await startArchive(database.url)];
  const { key } = await makeKey(database, "admin", { name: "ending" });
  const cookie = await signIn(one.url, key);
  expect((await get(other.url, "/session", cookie)).status).toBe(200);
  await database.pool.query(sql);
  const answers = await Promise.all([one, other].map(({ url }) => get(url, "/session", cookie)));
  expect(answers.map(({ status }) => status)).toEqual([401, 401]);
  expect(await answers[0]?.json()).toMatchObject({ type: "urn:longwatch:problem:session-over" });
});

test("with a cookie, what changes something must come from this origin; with a key it need not", async () => {
  const { url } = await startArchive(database.url);
  const { key } = await makeKey(database, "operator");
  const cookie = await signIn(url, key);
  const body = JSON.stringify({ matchers: { zone: [101] }, reason: "a test", durationMinutes: 5 });
  const silence = async (headers: Record<string, string>) =>
    (await get(url, "/api/v1/silences", cookie, { method: "POST", body, headers })).status;
  const host = new URL(url).host;

  expect(await silence({})).toBe(403);
  for (const site of ["cross-site", "same-site", "none"])
    expect(await silence({ "sec-fetch-site": site, origin: url })).toBe(403);
  expect(await silence({ origin: "http://127.0.0.1:1" })).toBe(403);
  expect(await silence({ origin: `http://${host}.evil.example` })).toBe(403);
  expect(await silence({ origin: "null" })).toBe(403);
  expect(await silence({ origin: `https://${host}` })).toBe(403);
  expect(await silence({ origin: url })).toBe(201);
  expect(await silence(SAME)).toBe(201);
  expect((await post(url, { key }, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await post(url, { key }, { origin: "https://evil.example" })).status).toBe(403);
  expect((await call(url, "/api/v1/silences", key, { method: "POST", body })).status).toBe(201);
});

test("wrong keys and wrong links are counted apart, and a session that is over locks nobody out", async () => {
  const { url } = await startArchive(database.url);
  const { key, keyId } = await makeKey(database, "reader");
  const over = { cookie: `longwatch_session=${"y".repeat(43)}`, "x-page-token": "y".repeat(43) };
  for (let n = 0; n < 30; n++) expect((await get(url, "/session", over)).status).toBe(401);
  const guess = async (body: object) => {
    const statuses: number[] = [];
    for (let n = 0; n < 12; n++) statuses.push((await post(url, body)).status);
    return statuses;
  };
  const refused = [...Array.from({ length: 10 }, () => 401), 429, 429];

  expect(await guess({ token: "z".repeat(43) })).toEqual(refused);
  const waiting = await post(url, { token: await linkToken(keyId) });
  expect(waiting.status).toBe(429);
  expect(Number(waiting.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await post(url, { key })).status).toBe(200);
  expect(await guess({ key: `lw_${"0".repeat(12)}_${"0".repeat(48)}` })).toEqual(refused);
  const { key: other } = await makeKey(database, "reader");
  expect((await call(url, "/session", other)).status).toBe(429);
});

test("S4: a key opens 30 sessions in ten minutes, and no more audit entries than that", async () => {
  const now = { ms: Date.now() };
  const { url } = await startArchive(database.url, { clock: () => now.ms });
  const [flooding, other] = [await makeKey(database, "reader"), await makeKey(database, "reader")];
  const statuses: number[] = [];
  for (let n = 0; n < 40; n++) statuses.push((await post(url, { key: flooding.key })).status);
  expect(statuses.filter((status) => status === 200).length).toBe(30);
  expect(new Set(statuses.slice(30))).toEqual(new Set([429]));
  const { rows } = await database.pool.query(
    "select from audit_entries where action = 'session.opened' and actor like $1",
    [`%${flooding.keyId}%`],
  );
  expect(rows.length).toBe(30);
  expect((await post(url, { key: other.key })).status).toBe(200);
  now.ms += 20_000;
  expect((await post(url, { key: flooding.key })).status).toBe(200);
});

test("S11: neither secret of a session opens anything alone, nor with that of another session", async () => {
  const { url } = await startArchive(database.url);
  const { key } = await makeKey(database, "admin");
  const [one, other] = [await signIn(url, key), await signIn(url, key)];
  const { cookie } = one;
  const alone = await get(url, "/session", { cookie });
  expect([alone.status, await alone.json()]).toMatchObject([
    401,
    { type: "urn:longwatch:problem:page-token-missing" },
  ]);
  expect((await get(url, "/session", { "x-page-token": one["x-page-token"] })).status).toBe(401);
  expect((await get(url, "/session", { cookie, "x-page-token": other["x-page-token"] })).status).toBe(401);
  expect((await get(url, "/session", { cookie, "x-page-token": "" })).status).toBe(401);
  expect((await get(url, "/session", one)).status).toBe(200);
});

test("S11: a second cookie of the name, which another port has set, neither hides the session nor outlives it", async () => {
  const { url } = await startArchive(database.url);
  const { key } = await makeKey(database, "admin");
  const signed = await signIn(url, key);
  const foreign = await signIn(url, key);
  const status = async (cookie: string) => (await get(url, "/session", { ...signed, cookie })).status;
  expect(await status(`longwatch_session=planted; ${signed.cookie}`)).toBe(200);
  expect(await status(`${signed.cookie}; longwatch_session=planted`)).toBe(200);
  expect(await status(`${foreign.cookie}; longwatch_session=; ${signed.cookie}`)).toBe(200);
  expect(await status("longwatch_session=planted; longwatch_session=other")).toBe(401);
  const many = Array.from({ length: 20 }, (_, i) => `longwatch_session=planted${i}`).join("; ");
  expect(await status(`${many}; ${signed.cookie}`)).toBe(200);
  const again = await call(url, "/session", undefined, {
    method: "POST",
    body: JSON.stringify({ key }),
    headers: { ...signed, cookie: `longwatch_session=planted; ${signed.cookie}` },
  });
  expect(again.status).toBe(200);
  expect(await status(signed.cookie)).toBe(401);
});

test("a session that is used all the time ends after seven days", async () => {
  const { url } = await startArchive(database.url);
  const { key, keyId } = await makeKey(database, "operator");
  const signed = await signIn(url, key);
  const age = (days: string) =>
    database.pool.query("update sessions set created_at = now() - $1::interval where key_id = $2", [
      days,
      keyId,
    ]);
  await age("6 days 23 hours");
  const { expiresAt } = (await (await get(url, "/session", signed)).json()) as { expiresAt: string };
  expect((Date.parse(expiresAt) - Date.now()) / 3_600_000).toBeCloseTo(1, 1);
  await age("7 days 1 minute");
  expect((await get(url, "/session", signed)).status).toBe(401);
  expect(await call(url, "/api/v1/sessions", key).then((answer) => answer.json())).toEqual({ items: [] });
});

test("a poll and an open stream do not count as use of a session, and a person's request does", async () => {
  const { url } = await startArchive(database.url, {}, { heartbeatMs: 10 });
  const { key, keyId } = await makeKey(database, "reader");
  const signed = await signIn(url, key);
  await database.pool.query(
    "update sessions set last_used_at = now() - interval '11 hours' where key_id = $1",
    [keyId],
  );
  const readIdleHours = async () => {
    const { rows } = await database.pool.query<{ hours: number }>(
      "select extract(epoch from now() - last_used_at)::float / 3600 as hours from sessions where key_id = $1",
      [keyId],
    );
    return rows[0]?.hours;
  };
  const stream = await get(url, "/api/v1/alerts/stream", signed);
  const reader = stream.body?.getReader();
  let heard = "";
  while (!heard.includes("heartbeat")) heard += Buffer.from((await reader?.read())?.value ?? []).toString();
  await reader?.cancel();
  await get(url, "/api/v1/alerts", signed);
  expect(await readIdleHours()).toBeCloseTo(11, 1);
  await get(url, "/api/v1/alerts", signed, { headers: { "x-user-active": "true" } });
  await vi.waitFor(async () => expect(await readIdleHours()).toBeCloseTo(0, 1));
});

test("sessions are listed and ended: an admin's all, anybody else's own, and each act is audited", async () => {
  const { url } = await startArchive(database.url);
  const [admin, mine, theirs] = await Promise.all(
    (["admin", "reader", "reader"] as const).map((role) => makeKey(database, role)),
  );
  await database.pool.query("update sessions set ended_at = now()");
  const agent = { "user-agent": `Browser\t${"x".repeat(500)}` };
  const cookies = {
    admin: await signIn(url, admin?.key ?? ""),
    mine: await signIn(url, mine?.key ?? "", agent),
    second: await signIn(url, mine?.key ?? ""),
    theirs: await signIn(url, theirs?.key ?? ""),
  };
  interface Item {
    readonly id: string;
    readonly keyId: string;
    readonly userAgent: string;
    readonly isCurrent: boolean;
  }
  const list = async (signed: Signed) =>
    ((await (await get(url, "/api/v1/sessions", signed)).json()) as { items: Item[] }).items;
  const end = async (signed: Signed, path: string) =>
    (await get(url, path, signed, { method: "DELETE", headers: SAME })).status;

  expect((await list(cookies.admin)).length).toBe(4);
  const own = await list(cookies.mine);
  expect(own.map(({ keyId, isCurrent }) => `${keyId} ${isCurrent}`).sort()).toEqual([
    `${mine?.keyId} false`,
    `${mine?.keyId} true`,
  ]);
  expect(own.find(({ isCurrent }) => isCurrent)?.userAgent).toBe(`Browser${"x".repeat(193)}`);
  const [foreign] = await list(cookies.theirs);
  expect(await end(cookies.mine, `/api/v1/sessions/${foreign?.id}`)).toBe(404);
  expect(await end(cookies.admin, `/api/v1/sessions/${foreign?.id}`)).toBe(204);
  expect((await get(url, "/session", cookies.theirs)).status).toBe(401);
  expect(await end(cookies.mine, "/api/v1/sessions/x'or'1")).toBe(400);
  const out = await get(url, "/session", cookies.mine, { method: "DELETE", headers: SAME });
  expect([out.status, out.headers.get("set-cookie")]).toEqual([
    204,
    "longwatch_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
  ]);
  expect((await get(url, "/session", cookies.mine)).status).toBe(401);
  expect(await end(cookies.second, "/session?everywhere=maybe")).toBe(400);
  expect(await end(cookies.second, "/session?everywhere=true")).toBe(204);
  expect((await list(cookies.admin)).map(({ keyId }) => keyId)).toEqual([admin?.keyId]);
  const { rows } = await database.pool.query<{ action: string }>(
    "select action from audit_entries where action like 'session.%' order by id desc limit 7",
  );
  expect(rows.map(({ action }) => action).reverse()).toEqual([
    "session.opened",
    "session.opened",
    "session.opened",
    "session.opened",
    "session.revoked",
    "session.ended",
    "session.ended",
  ]);
});

test("an open stream ends when its session does", async () => {
  const { url } = await startArchive(database.url, {}, { heartbeatMs: 30 });
  const { key } = await makeKey(database, "reader");
  const cookie = await signIn(url, key);
  const stream = await get(url, "/api/v1/alerts/stream", cookie);
  expect(stream.status).toBe(200);
  await get(url, "/session", cookie, { method: "DELETE", headers: SAME });
  await stream.text();
});

test("a link is made for the named key, else for the oldest admin key, and for no dead one", async () => {
  await database.pool.query("update api_keys set revoked_at = now()");
  expect(await makeLink()).toEqual({ kind: "no-key" });
  const first = await makeKey(database, "admin", { name: "twice" });
  await makeKey(database, "admin", { name: "twice" });
  expect(await makeLink()).toMatchObject({ kind: "made", keyId: first.keyId });
  expect(await makeLink("twice")).toMatchObject({ kind: "several" });
  expect(await makeLink(first.keyId)).toMatchObject({ kind: "made", keyId: first.keyId });
  expect(await makeLink("nobody")).toEqual({ kind: "no-key" });
});

test("a request of a session is a use of its key", async () => {
  const { url } = await startArchive(database.url);
  const { keyId } = await makeKey(database, "reader", { name: "used" });
  const signed = await readSigned(await post(url, { token: await linkToken("used") }));
  const isUsed = async () => {
    const { rows } = await database.pool.query("select last_used_at from api_keys where key_id = $1", [
      keyId,
    ]);
    return rows[0]?.last_used_at !== null;
  };
  expect(await isUsed()).toBe(false);

  await get(url, "/session", signed, { headers: { "x-user-active": "true" } });
  await expect.poll(isUsed).toBe(true);
});
