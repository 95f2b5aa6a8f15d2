import fc from "fast-check";
import { expect, test } from "vitest";
import type { SignInGrant } from "#config/file/sign-in-entry.ts";
import { PERSON_ROLES } from "#model/kinds.ts";
import { ROLE_SCOPES } from "#model/roles.ts";
import type { Caller } from "#operations/caller.ts";
import { grantPerson } from "#people/keys/grant-person.ts";

const reader = (zoneIds: number[] | null, isMasked = false): SignInGrant => ({
  role: "reader",
  zoneIds,
  isMasked,
});
const TABLE = {
  all: reader(null),
  shop: reader([101]),
  blog: reader([102, 101]),
  guests: reader([101, 103], true),
  ops: { role: "operator", zoneIds: [103], isMasked: false },
} as const satisfies Record<string, SignInGrant>;

function grant(claims: object, claim = "groups", roles: Record<string, SignInGrant> = TABLE) {
  return grantPerson({ sub: "ada", ...claims }, { issuer: "https://login.example", claim, roles });
}

test.each<[string[], string]>([
  [["shop", "blog", "unknown"], "reader 101,102"],
  [["shop", "all"], "reader all"],
  [["all", "ops"], "operator 103"],
  [["guests"], "reader 101,103 masked"],
  [["guests", "shop"], "reader 101"],
])("of the values %j the strongest counts: %s", (groups, expected) => {
  const { roles, zoneIds, masked } = grant({ groups }) as Caller;
  expect(`${roles.join()} ${zoneIds?.join() ?? "all"}${masked ? " masked" : ""}`).toBe(expected);
});

test("values together never give a right that none of them gives", () => {
  const entry = fc.record({
    role: fc.constantFrom(...PERSON_ROLES),
    zoneIds: fc.option(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1 })),
    isMasked: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 4 }), (grants) => {
      const table = Object.fromEntries(grants.map((one, index) => [`g${index}`, one]));
      const caller = grant({ groups: Object.keys(table) }, "groups", table) as Caller;
      for (const zone of caller.zoneIds ?? [1, 5])
        for (const scope of caller.scopes)
          expect(
            grants.some(
              ({ role, zoneIds, isMasked }) =>
                ROLE_SCOPES[role].includes(scope) &&
                (zoneIds === null || zoneIds.includes(zone)) &&
                (caller.masked || !isMasked),
            ),
          ).toBe(true);
    }),
  );
});

test("a claim is a text or a list, and its name is taken whole before it is a path", () => {
  expect(grant({ groups: "shop" })).toMatchObject({ zoneIds: [101] });
  expect(grant({ realm: { roles: ["shop"] } }, "realm.roles")).toMatchObject({ zoneIds: [101] });
  expect(grant({ "https://x.example/roles": ["shop"] }, "https://x.example/roles")).toMatchObject({
    zoneIds: [101],
  });
  for (const groups of [undefined, null, 7, {}, [{ shop: 1 }], ["constructor", "__proto__"]])
    expect(grant({ groups })).toHaveProperty("refusal");
  expect(grant({}, "constructor.name")).toHaveProperty("refusal");
});

test("the name is the verified address, else the user name, the name or the subject, as one short line", () => {
  const nameOf = (claims: object) => (grant({ groups: ["all"], ...claims }) as Caller).name;
  const all = { email: "a@x.example", email_verified: true, preferred_username: "ada", name: "Ada L." };
  expect(nameOf(all)).toBe("a@x.example");
  expect(nameOf({ ...all, email_verified: false })).toBe("ada");
  for (const blank of [" ", "\u200b", "\u2800"])
    expect(nameOf({ ...all, email: blank, preferred_username: blank })).toBe("Ada L.");
  expect(nameOf({})).toBe("ada");
  expect(nameOf({ name: `\u202e${"x\n".repeat(200)}` })).toMatch(/^\\u\{202e\}x( x)+.*…$/);
  expect(nameOf({ name: "x".repeat(500) }).length).toBe(100);
});

test("the id is of the account at this issuer, whatever its name", () => {
  const ids = [
    grant({ groups: ["all"], name: "one" }),
    grant({ groups: ["all"], name: "two" }),
    grant({ groups: ["all"], sub: "bob" }),
  ].map((one) => (one as Caller).keyId);
  expect(ids[0]).toBe(ids[1]);
  expect(ids[2]).not.toBe(ids[0]);
});
