import { createHmac, generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { grantSessions } from "#app/open-keys.ts";
import { openPeople } from "#app/open-people.ts";
import type { SignIn } from "#config/file/sign-in-entry.ts";
import { createSecret } from "#lib/secret.ts";
import { grantAgain, grantPerson, joinClaims, toGrantBasis } from "#people/keys/grant-person.ts";
import { findFreePort } from "#test/support/free-port.ts";
import { createVisitor, signToken, startIssuer, type TestIssuer, toTokenText } from "#test/support/issuer.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { call, makeKey, startArchive } from "./start-archive.ts";

const PUBLIC_URL = "https://longwatch.example";
const REDIRECT_URI = `${PUBLIC_URL}/sign-in`;
const SAME = { "sec-fetch-site": "same-origin" };
const OPERATOR = { role: "operator", zoneIds: null, isMasked: false } as const;

let database: MigratedDatabase;
let issuer: TestIssuer;

beforeAll(async () => {
  [database, issuer] = await Promise.all([
    createMigratedDatabase(),
    startIssuer({ redirectUri: REDIRECT_URI }),
  ]);
});
afterAll(() => Promise.all([database.drop(), issuer.close()]));
beforeEach(() => {
  issuer.account = { sub: "ada", email: "ada@example.org", email_verified: true, groups: ["desk"] };
  issuer.idTokenSeconds = 3_600;
  issuer.forge = null;
});

async function startService(settings: SignIn | null = issuer.settings({ desk: OPERATOR })) {
  const now = { ms: Date.now() };
  const clock = () => now.ms;
  const current = { settings };
  const signIn = () => current.settings;
  const people = openPeople({ settings: signIn, publicUrl: PUBLIC_URL, clock });
  return {
    now,
    current,
    ...(await startArchive(database.url, { people, signIn, publicUrl: PUBLIC_URL, clock })),
  };
}

interface Begun {
  readonly cookie: string;
  readonly address: string;
}

/** What the sign-in page does after a click on the button. */
async function begin(url: string): Promise<Begun> {
  const answer = await call(url, "/session/issuer", undefined, { method: "POST", headers: SAME });
  expect(answer.status).toBe(200);
  const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { cookie, address: ((await answer.json()) as { url: string }).url };
}

/** Signs in at the issuer as its account, and returns the query with which it sends the browser back. */
async function visit(address: string, visitor = createVisitor()): Promise<string> {
  const { left } = await visitor.follow(address);
  expect(left).toMatch(/^https:\/\/longwatch\.example\/sign-in\?/);
  return new URL(left ?? "").search.slice(1);
}

const finish = (url: string, cookie: string, answer: string, headers = SAME) =>
  call(url, "/session", undefined, {
    method: "POST",
    body: JSON.stringify({ answer }),
    headers: { ...headers, cookie },
  });

type Signed = Record<"cookie" | "x-page-token", string>;

async function readSigned(answer: Response): Promise<Signed> {
  expect(answer.status).toBe(200);
  const { pageToken } = (await answer.json()) as { pageToken: string };
  const cookies = answer.headers.getSetCookie();
  const cookie = cookies.find((one) => one.startsWith("longwatch_session="))?.split(";")[0] ?? "";
  return { cookie, "x-page-token": pageToken };
}

async function signIn(url: string, visitor = createVisitor()): Promise<Signed> {
  const { cookie, address } = await begin(url);
  return readSigned(await finish(url, cookie, await visit(address, visitor)));
}

const get = (url: string, path: string, signed: Partial<Signed>, init: RequestInit = {}) =>
  call(url, path, undefined, { ...init, headers: { ...SAME, ...signed } });

async function readProblem(answer: Response) {
  const { type, detail } = (await answer.json()) as { type: string; detail: string };
  return { status: answer.status, type: type.replace("urn:longwatch:problem:", ""), detail };
}

test("a person signs in at the issuer and has the role and the zones that the table gives to the claim", async () => {
  const { url, lines } = await startService(
    issuer.settings({ desk: { role: "reader", zoneIds: [101], isMasked: true } }),
  );
  const { cookie, address } = await begin(url);
  const asked = new URL(address).searchParams;
  expect(asked.get("redirect_uri")).toBe(REDIRECT_URI);
  expect(asked.get("code_challenge_method")).toBe("S256");
  expect(cookie).toMatch(/^longwatch_sign_in=/);
  const query = await visit(address);
  const answer = await finish(url, cookie, query);
  const cookies = answer.headers.getSetCookie();
  expect(cookies[0]).toBe("longwatch_sign_in=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
  const signed = await readSigned(answer);
  const info = (await (await get(url, "/session", signed)).json()) as Record<string, string>;

  expect(info).toMatchObject({
    keyName: "ada@example.org",
    roles: ["reader"],
    zones: [101],
    maskedAddresses: true,
  });
  expect(info["keyId"]).toMatch(/^person-[0-9a-f]{16}$/);
  expect((Date.parse(info["expiresAt"] ?? "") - Date.now()) / 60_000).toBeCloseTo(60, 0);
  expect((await get(url, "/api/v1/trends?zone=102", signed)).status).toBe(403);
  expect((await get(url, "/api/v1/keys", signed)).status).toBe(403);
  const code = new URLSearchParams(query).get("code") ?? "";
  expect(code).not.toBe("");
  for (const secret of [code, cookie.split("=")[1] ?? "", "the client's own secret"])
    expect(lines.join("")).not.toContain(secret);
});

test("the person's name is the actor of an audit entry, of a silence and of the session", async () => {
  const { url } = await startService();
  const signed = await signIn(url);
  const { key } = await makeKey(database, "admin");
  const body = JSON.stringify({ matchers: { zone: [101] }, reason: "a test", durationMinutes: 5 });
  const silence = await get(
    url,
    "/api/v1/silences",
    { ...signed, "content-type": "application/json" } as never,
    {
      method: "POST",
      body,
    },
  );
  expect(silence.status).toBe(201);
  expect(await silence.json()).toMatchObject({ createdBy: "ada@example.org" });
  const { rows } = await database.pool.query<{ actor: string; action: string }>(
    "select actor, action from audit_entries where actor like '%ada@example.org%' order by id",
  );
  expect(rows.map(({ action }) => action)).toContain("silence.added");
  for (const { actor } of rows) expect(actor).toMatch(/^person [0-9a-f]{16} \(ada@example\.org\)$/);
  const { items } = (await (await call(url, "/api/v1/sessions", key)).json()) as {
    items: { id: string; keyName: string; roles: string[] }[];
  };
  const own = items.find(({ keyName }) => keyName === "ada@example.org");
  expect(own?.roles).toEqual(["operator"]);
});

test("a person has the rights that the settings of now give, on every replica and after a restart", async () => {
  const before = issuer.settings({ desk: { ...OPERATOR, role: "admin" } });
  const { url, current } = await startService(before);
  const signed = await signIn(url);
  const rights = async (at = url) => {
    const answer = await get(at, "/session", signed);
    const { roles, zones, maskedAddresses } = (await answer.json()) as Record<string, unknown>;
    return answer.status === 200 ? { roles, zones, maskedAddresses } : answer.status;
  };
  expect(await rights()).toEqual({ roles: ["admin"], zones: null, maskedAddresses: false });
  const lower = issuer.settings({ desk: { role: "reader", zoneIds: [101], isMasked: true } });
  current.settings = lower;
  const low = { roles: ["reader"], zones: [101], maskedAddresses: true };
  expect(await rights()).toEqual(low);
  expect((await get(url, "/api/v1/keys", signed)).status).toBe(403);
  const other = await startService(lower);
  expect(await rights(other.url)).toEqual(low);
  current.settings = before;
  expect(await rights()).toEqual({ roles: ["admin"], zones: null, maskedAddresses: false });
  const { sessionId } = (await (await get(url, "/session", signed)).json()) as { sessionId: string };
  const { rows } = await database.pool.query<{ action: string }>(
    "select action from audit_entries where action = 'session.changed' and subject = $1",
    [`session ${sessionId}`],
  );
  expect(rows.map(({ action }) => action)).toEqual(["session.changed", "session.changed"]);
});

const WITHDRAWALS: readonly (readonly [what: string, change: (own: SignIn) => SignIn | null])[] = [
  ["sign_in is removed", () => null],
  ["the issuer is another", (own) => ({ ...own, issuer: "https://other.example" })],
  ["the client is another", (own) => ({ ...own, clientId: "other" })],
  ["the claim's value has no role", (own) => ({ ...own, roles: { other: OPERATOR } })],
  ["another claim decides", (own) => ({ ...own, claim: "hd" })],
  [
    "another claim decides, which gives a role too",
    (own) => ({ ...own, claim: "email", roles: { ...own.roles, "ada@example.org": OPERATOR } }),
  ],
  ["the claim is another part of its object", (own) => ({ ...own, claim: "groups.0" })],
];

test.each(WITHDRAWALS)("a session has no rights any more if %s", (_, change) => {
  const own = issuer.settings({ desk: OPERATOR });
  const claims = { sub: "ada", email: "ada@example.org", email_verified: true, groups: ["desk"] };
  const basis = toGrantBasis(claims, own);
  expect(grantAgain(basis, own)).toMatchObject({ roles: ["operator"] });
  expect(grantAgain(basis, change(own))).toBeNull();
});

test("a person's session without rights ends for good, whether it is used meanwhile or not", async () => {
  const own = issuer.settings({ desk: OPERATOR });
  const { url, current } = await startService(own);
  const [used, idle] = [await signIn(url), await signIn(url)];
  current.settings = null;
  const answers = await Promise.all([0, 1, 2].map(() => get(url, "/session", used)));
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401]);
  await grantSessions(database, () => current.settings);
  current.settings = own;
  for (const signed of [used, idle]) expect((await get(url, "/session", signed)).status).toBe(401);
  const { rows } = await database.pool.query(
    "select from sessions where claims is not null and ended_at is not null",
  );
  expect(rows).toEqual([]);
});

test("a session that nobody uses is listed with the rights that the settings of now give", async () => {
  await database.pool.query("delete from sessions");
  const { url, current } = await startService(issuer.settings({ desk: { ...OPERATOR, role: "admin" } }));
  await signIn(url);
  const { key } = await makeKey(database, "admin");
  const list = async () => {
    const { items } = (await (await call(url, "/api/v1/sessions", key)).json()) as {
      items: { roles: string[] }[];
    };
    return items.map(({ roles }) => roles);
  };
  expect(await list()).toEqual([["admin"]]);
  current.settings = issuer.settings({ desk: { role: "reader", zoneIds: [101], isMasked: true } });
  const changes = () =>
    database.pool
      .query("select from audit_entries where action = 'session.changed'")
      .then(({ rowCount }) => rowCount);
  const before = (await changes()) ?? 0;
  await Promise.all([0, 1, 2].map(() => grantSessions(database, () => current.settings)));
  expect(await list()).toEqual([["reader"]]);
  expect(await changes()).toBe(before + 1);
  current.settings = null;
  await grantSessions(database, () => current.settings);
  expect(await list()).toEqual([]);
});

test.each(["null", `'{"iss": "https://x.example", "groups": ["desk"]}'`])(
  "a session of a version that stored %s ends",
  async (stored) => {
    const { url } = await startService();
    const signed = await signIn(url);
    await database.pool.query(`update sessions set claims = ${stored} where ended_at is null`);
    expect((await get(url, "/session", signed)).status).toBe(401);
  },
);

test("a session that an admin revokes is refused at the next request", async () => {
  const { url } = await startService();
  const signed = await signIn(url);
  const { sessionId } = (await (await get(url, "/session", signed)).json()) as { sessionId: string };
  const { key } = await makeKey(database, "admin");
  expect((await call(url, `/api/v1/sessions/${sessionId}`, key, { method: "DELETE" })).status).toBe(204);
  expect((await get(url, "/session", signed)).status).toBe(401);
});

test("a session ends with the ID token, and an admin's after 24 hours even if the token lasts longer", async () => {
  await database.pool.query("update sessions set ended_at = now(), id_token = null, claims = null");
  issuer.idTokenSeconds = 300;
  const { url } = await startService(issuer.settings({ desk: { ...OPERATOR, role: "admin" } }));
  const hoursLeft = async (signed: Signed) => {
    const { expiresAt } = (await (await get(url, "/session", signed)).json()) as { expiresAt: string };
    return (Date.parse(expiresAt) - Date.now()) / 3_600_000;
  };
  const short = await signIn(url);
  expect(await hoursLeft(short)).toBeCloseTo(300 / 3_600, 2);
  issuer.idTokenSeconds = 30 * 86_400;
  const long = await signIn(url);
  await database.pool.query(
    "update sessions set created_at = now() - interval '23 hours', token_ends_at = token_ends_at - interval '301 s' where person_name is not null",
  );
  expect((await get(url, "/session", short)).status).toBe(401);
  expect(await hoursLeft(long)).toBeCloseTo(1, 1);
  const { key } = await makeKey(database, "admin");
  const listed = JSON.stringify(await (await call(url, "/api/v1/sessions", key)).json());
  expect(listed.split("person-").length - 1).toBe(1);
});

test("sign-out ends the session here and at the issuer", async () => {
  const { url } = await startService();
  const visitor = createVisitor();
  const signed = await signIn(url, visitor);
  const asked = (address: string) => issuer.requests.filter((path) => path.startsWith(address)).length;
  const loginsBefore = asked("/interaction");
  // The issuer still knows the browser and asks nothing.
  const again = await signIn(url, visitor);
  expect(asked("/interaction")).toBe(loginsBefore);

  const out = await get(url, "/session?everywhere=true", again, { method: "DELETE" });
  expect(out.status).toBe(200);
  const { signOutUrl } = (await out.json()) as { signOutUrl: string };
  for (const session of [signed, again]) expect((await get(url, "/session", session)).status).toBe(401);
  const { body } = await visitor.follow(signOutUrl);
  const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(body) ?? [];
  const confirmed = await visitor.follow(`${issuer.url}/session/end/confirm`, {
    method: "POST",
    body: new URLSearchParams({ xsrf, logout: "yes" }),
  });
  expect(confirmed.left).toBe(REDIRECT_URI);
  await signIn(url, visitor);
  expect(asked("/interaction")).toBe(loginsBefore + 1);
  const { rows } = await database.pool.query(
    "select from sessions where id_token is not null and ended_at is not null",
  );
  expect(rows.length).toBe(0);
});

test("a person without a matching value is refused with the claim, its values and what the table knows", async () => {
  const { url, lines } = await startService();
  issuer.account = { sub: "eve", name: "Eve\u202e<script>", groups: ["sales", 'x"y'] };
  const { cookie, address } = await begin(url);
  const answer = await readProblem(await finish(url, cookie, await visit(address)));
  expect(answer).toEqual({
    status: 403,
    type: "no-role",
    detail:
      'Eve\\u{202e}<script> has no role here: the claim groups has "sales", "x\\"y", and sign_in.roles knows "desk". Add one of the claim\'s values to sign_in.roles in the configuration file, or change the person\'s groups at the issuer.',
  });
  expect(lines.filter((line) => /"level":"(?:warn|error)"/.test(line))).toEqual([]);
  issuer.account = { sub: "eve" };
  const next = await begin(url);
  const { detail } = await readProblem(await finish(url, next.cookie, await visit(next.address)));
  expect(detail).toContain("the claim groups has no text");
});

test("a person with a group that cannot be stored is refused with the reason, also if another group has a role", async () => {
  const { url } = await startService();
  for (const group of ["sales\0", "\ud800", "desk\udfff"]) {
    issuer.forge = (own) => signToken({ ...own, claims: { ...own.claims, groups: ["desk", group] } });
    const { cookie, address } = await begin(url);
    const { status, type, detail } = await readProblem(await finish(url, cookie, await visit(address)));
    expect([status, type]).toEqual([403, "no-role"]);
    expect(detail).toContain("holds a NUL character or half of a surrogate pair");
  }
});

test("a NUL character or half of a surrogate pair in another claim is spelled out", async () => {
  const { url } = await startService();
  issuer.account = { sub: "ada", groups: ["desk"] };
  issuer.forge = (own) =>
    signToken({ ...own, claims: { ...own.claims, preferred_username: "a\0b\ud800", name: "\ud800" } });
  const info = await (await get(url, "/session", await signIn(url))).json();
  expect(info).toMatchObject({ keyName: "a\\u{0}b\\u{d800}" });
});

test.each<[string, object, boolean]>([
  ["email", { email_verified: true }, true],
  ["email", { email_verified: false }, false],
  ["email", {}, false],
  ["email", { email_verified: "true" }, false],
  ["email", { email_verified: 1 }, false],
  ["contact.email", { email_verified: true, contact: { email: "ada@example.org" } }, false],
  ["contact.email", { contact: { email: "ada@example.org", email_verified: true } }, true],
  ["https://example.org/email", { "https://example.org/email": "ada@example.org" }, false],
  ["emails", { emails: ["ada@example.org"] }, false],
])("by the claim %s, a person with %j has a role: %s", (claim, more, isGranted) => {
  const settings = issuer.settings({ "ada@example.org": OPERATOR }, { claim });
  const granted = grantPerson({ sub: "ada", email: "ada@example.org", ...more }, settings);
  const refusal = "refusal" in granted ? granted.refusal : null;
  const refused = expect.stringContaining("counts only with email_verified true") as string;
  expect(refusal).toEqual(isGranted ? null : refused);
});

test.each([
  [{ email: "victim@example.org" }, { email: "ada@evil.example", email_verified: true }],
  [{ email_verified: true }, { email: "victim@example.org" }],
  [{ email_verified: true }, { email: "victim@example.org", email_verified: false }],
  [{}, { email: "victim@example.org", email_verified: false }],
])("an ID token with %j and userinfo with %j verify no address together", (own, more) => {
  const settings = issuer.settings({ "victim@example.org": OPERATOR }, { claim: "email" });
  expect(grantPerson(joinClaims({ sub: "eve", ...own }, more), settings)).toHaveProperty("refusal");
});

test("an address that is not verified is nobody's name", () => {
  const person = grantPerson(
    { sub: "eve", email: "ada@example.org", groups: ["desk"] },
    issuer.settings({ desk: OPERATOR }),
  );
  expect(person).toMatchObject({ name: "eve" });
});

test("an answer opens one session only, and nothing with another browser's cookie, state, nonce or code", async () => {
  const { url } = await startService();
  const [mine, theirs] = [await begin(url), await begin(url)];
  const query = await visit(mine.address);
  const stolen = await visit(theirs.address);
  const refused = async (cookie: string, answer: string) =>
    (await readProblem(await finish(url, cookie, answer))).type;
  const withState = (of: string, from: string) => {
    const changed = new URLSearchParams(of);
    changed.set("state", new URLSearchParams(from).get("state") ?? "");
    return changed.toString();
  };

  expect(await refused("", query)).toBe("sign-in-over");
  expect(await refused(theirs.cookie, query)).toBe("sign-in-refused");
  // A stolen code in a sign-in of the thief: the state is right, and the verifier of PKCE is not.
  expect(await refused(mine.cookie, withState(stolen, query))).toBe("sign-in-refused");
  const iss = new URLSearchParams(query);
  iss.set("iss", "https://other.example");
  expect(await refused(mine.cookie, iss.toString())).toBe("sign-in-refused");
  expect(await refused(mine.cookie, `${query}&${query}`)).toBe("sign-in-refused");
  const cookie = mine.cookie.replace(/=[0-9a-z]+\./, `=${(Date.now() + 1_000).toString(36)}.`);
  expect(await refused(cookie, query)).toBe("sign-in-refused");

  await readSigned(await finish(url, mine.cookie, query));
  expect(await refused(mine.cookie, query)).toBe("sign-in-refused");

  const bent = await begin(url);
  const address = new URL(bent.address);
  address.searchParams.set("nonce", "chosen-by-somebody-else");
  expect(await refused(bent.cookie, await visit(address.href))).toBe("sign-in-refused");
});

test("of two sign-in cookies the one that began the sign-in counts, whichever comes first", async () => {
  const { url } = await startService();
  for (const toCookie of [(a: string, b: string) => `${a}; ${b}`, (a: string, b: string) => `${b}; ${a}`]) {
    const [mine, planted] = [await begin(url), await begin(url)];
    const answer = await finish(url, toCookie(planted.cookie, mine.cookie), await visit(mine.address));
    expect(answer.status).toBe(200);
  }
});

test("one secret opens one session, even if the issuer accepts a second code for it", async () => {
  const { url } = await startService();
  const visitor = createVisitor();
  const { cookie, address } = await begin(url);
  const [first, second] = [await visit(address, visitor), await visit(address, visitor)];
  const answers = await Promise.all([first, second].map((query) => finish(url, cookie, query)));
  expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 401]);
});

test("a sign-in that takes longer than ten minutes is refused, and so is one from another site", async () => {
  const { url, now } = await startService();
  const { cookie, address } = await begin(url);
  const query = await visit(address);
  const foreign = { "sec-fetch-site": "cross-site" };
  expect((await finish(url, cookie, query, foreign)).status).toBe(403);
  const start = { method: "POST", headers: foreign };
  expect((await call(url, "/session/issuer", undefined, start)).status).toBe(403);
  now.ms += 10 * 60_000;
  const { status, type, detail } = await readProblem(await finish(url, cookie, query));
  expect([status, type]).toEqual([401, "sign-in-over"]);
  expect(detail).toContain(`Open ${PUBLIC_URL} and sign in again.`);
});

test("a refusal of the issuer is shown as one word of the standard, without the issuer's own text", async () => {
  const { url } = await startService();
  const { cookie, address } = await begin(url);
  const state = new URL(address).searchParams.get("state") ?? "";
  const query = (error: string) =>
    new URLSearchParams({ error, error_description: "<b>call 555</b>", state, iss: issuer.url }).toString();
  const denied = await readProblem(await finish(url, cookie, query("access_denied")));
  expect([denied.status, denied.detail]).toEqual([
    401,
    `The issuer ${new URL(issuer.url).host} ended the sign-in with access_denied. Sign in again, or ask whether you may use Longwatch.`,
  ]);
  const hostile = await readProblem(await finish(url, cookie, query("call 555, now")));
  expect(hostile.detail).toContain("with an unknown error.");
});

test("the service starts while the issuer is down, and people sign in once it is up", async () => {
  const port = await findFreePort();
  const settings = issuer.settings({ desk: OPERATOR }, { issuer: `http://127.0.0.1:${port}` });
  const { url, lines } = await startService(settings);
  const down = await call(url, "/session/issuer", undefined, { method: "POST", headers: SAME });
  expect(await readProblem(down)).toEqual({
    status: 502,
    type: "issuer-failed",
    detail: `The issuer 127.0.0.1:${port} does not answer as it should (ECONNREFUSED). Try again later. If it lasts, run longwatch doctor.`,
  });
  const logged = lines.filter((line) => line.includes("request failed"));
  expect(logged.length).toBe(1);
  expect(logged[0]).not.toContain("stack");
  const { key } = await makeKey(database, "reader");
  expect((await call(url, "/session", key)).status).toBe(200);

  const late = await startIssuer({ port, redirectUri: REDIRECT_URI });
  try {
    await signIn(url);
  } finally {
    await late.close();
  }
});

test.each([
  ["a wrong client secret", { clientSecret: createSecret("wrong") }, "does not accept sign_in.client_id"],
  ["a private address that is not allowed", { allowPrivateNetworks: false }, "allow_private_networks: true"],
])("%s is said with the setting to correct", async (_, changes, said) => {
  // A name, which only its address shows to be private.
  const place = issuer.url.replace("127.0.0.1", "localhost");
  const isGuarded = "allowPrivateNetworks" in changes;
  const { url, lines } = await startService(
    issuer.settings(
      { desk: OPERATOR },
      { ...changes, issuer: isGuarded ? place.replace("http:", "https:") : issuer.url },
    ),
  );
  const started = await call(url, "/session/issuer", undefined, { method: "POST", headers: SAME });
  const answer = isGuarded
    ? started
    : await begin(url).then(async ({ cookie, address }) => finish(url, cookie, await visit(address)));
  const { status, detail } = await readProblem(answer);
  expect(status).toBe(502);
  expect(detail).toContain(said);
  expect(lines.filter((line) => line.includes("request failed")).length).toBe(1);
});

test("an ID token that is over by this machine's clock is said to be a matter of clocks", async () => {
  const { url, now } = await startService();
  now.ms += 2 * 3_600_000;
  const { cookie, address } = await begin(url);
  const { status, detail } = await readProblem(await finish(url, cookie, await visit(address)));
  expect(status).toBe(502);
  expect(detail).toContain("Correct the clock");
});

const FOREIGN = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const HOUR_S = 3_600;
const UNSIGNED = "that none of its keys has signed";

const FORGED: readonly (readonly [flaw: string, forge: NonNullable<TestIssuer["forge"]>, said: string])[] = [
  [
    "a changed claim",
    (own) =>
      toTokenText(own.header, { ...own.claims, groups: ["desk"] }) + signToken(own).replace(/^.*\./, "."),
    UNSIGNED,
  ],
  ["a foreign key", (own) => signToken({ ...own, key: FOREIGN.privateKey }), UNSIGNED],
  [
    "a foreign key's own id",
    (own) => signToken({ ...own, header: { alg: "RS256", kid: "x" }, key: FOREIGN.privateKey }),
    UNSIGNED,
  ],
  ["no signature", (own) => `${toTokenText({ alg: "none" }, own.claims)}.`, UNSIGNED],
  ["an empty signature", (own) => `${toTokenText(own.header, own.claims)}.`, UNSIGNED],
  [
    "the public key as the secret of HS256",
    ({ claims, publicKey }) => {
      const signed = toTokenText({ alg: "HS256" }, claims);
      const secret = publicKey?.export({ format: "pem", type: "spki" }) ?? "";
      return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
    },
    UNSIGNED,
  ],
  ["another azp", (own) => signToken({ ...own, claims: { ...own.claims, azp: "other" } }), "azp must be"],
  ...["", " ", "\u200b", "\u00a0\u2060", "\ufeff", "\u3164", "\u2800", "\u202e", "a\0", "a\ud800"].map(
    (sub): [string, NonNullable<TestIssuer["forge"]>, string] => [
      `sub ${JSON.stringify(sub)}`,
      (own) => signToken({ ...own, claims: { ...own.claims, sub } }),
      "sub must be",
    ],
  ),
  [
    "a long sub",
    (own) => signToken({ ...own, claims: { ...own.claims, sub: "a".repeat(256) } }),
    "sub must be",
  ],
  [
    "an iat in the future",
    (own) => signToken({ ...own, claims: { ...own.claims, iat: Date.now() / 1_000 + HOUR_S } }),
    "Correct the clock",
  ],
  [
    "an old iat",
    (own) => signToken({ ...own, claims: { ...own.claims, iat: Date.now() / 1_000 - HOUR_S } }),
    "Correct the clock",
  ],
];

// All of them on one service, which costs more than a sign-in.
test("a forged ID token opens no session", async () => {
  const { url } = await startService();
  for (const [what, forge, said] of FORGED) {
    issuer.forge = forge;
    const { cookie, address } = await begin(url);
    const { status, detail } = await readProblem(await finish(url, cookie, await visit(address)));
    expect([what, status, detail]).toEqual([what, 502, expect.stringContaining(said)]);
  }
});

test("an ID token that lasts longer than any time does opens a session of seven days at most", async () => {
  const { url } = await startService();
  issuer.forge = (own) => signToken({ ...own, claims: { ...own.claims, exp: 1e300 } });
  const signed = await signIn(url);
  const { rows } = await database.pool.query<{ days: number }>(
    "select extract(epoch from max(token_ends_at) - now()) / 86400 as days from sessions",
  );
  expect(Number(rows[0]?.days)).toBeCloseTo(7, 1);
  expect((await get(url, "/session", signed)).status).toBe(200);
});

test("without an issuer the button has no label, a start is refused, and keys sign in as before", async () => {
  const { url } = await startService(null);
  expect(await (await call(url, "/session/issuer")).json()).toEqual({ label: null });
  expect((await call(url, "/session/issuer", undefined, { method: "POST" })).status).toBe(404);
  const { key } = await makeKey(database, "reader");
  const body = JSON.stringify({ key });
  expect((await call(url, "/session", undefined, { method: "POST", body })).status).toBe(200);
  const configured = await startService();
  expect(await (await call(configured.url, "/session/issuer")).json()).toEqual({ label: "Example" });
  expect((await call(configured.url, "/session", undefined, { method: "POST", body })).status).toBe(200);
});

test("one person opens 30 sessions in ten minutes", async () => {
  const { url } = await startService();
  issuer.account = { sub: "busy", email: "busy@example.org", groups: ["desk"] };
  const visitor = createVisitor();
  const statuses: number[] = [];
  for (let n = 0; n < 31; n++) {
    const { cookie, address } = await begin(url);
    statuses.push((await finish(url, cookie, await visit(address, visitor))).status);
  }
  expect(statuses).toEqual([...Array.from({ length: 30 }, () => 200), 429]);
});
