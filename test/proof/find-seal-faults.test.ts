import { expect, test } from "vitest";
import type { HourContents } from "#model/covered-hour.ts";
import { findSealFaults } from "#proof/rules/judge-counts.ts";

const HOLDS: HourContents = { count: 9, ids: "a1", unresolved: 0, doubled: 0, contestedAt: null, revised: 0 };
const SEAL = { stored: { count: 9, ids: "a1" }, search: {}, counts: { count: 9 } };
const LACKS = { lacks: { count: 2 } };

test.each<[string, object, Partial<HourContents>, string[]]>([
  ["a good seal", SEAL, {}, []],
  ["an hour that lost an event", SEAL, { count: 8 }, ["9 8 another number of events than at the seal"]],
  [
    "an hour in which an event took the place of another",
    SEAL,
    { ids: "b2" },
    ["9 9 the same number of events as at the seal, but different events"],
  ],
  [
    "a seal with a lower count of the platform",
    { ...SEAL, counts: { count: 7 } },
    {},
    ["7 9 sealed although the platform counted fewer events"],
  ],
  [
    "a seal whose search and counts lack the same withdrawn events",
    { ...SEAL, search: LACKS, counts: { count: 7, ...LACKS } },
    {},
    [],
  ],
  ["an hour with events of the list only", SEAL, { unresolved: 3 }, ["9 6 events without every dimension"]],
  [
    "withdrawn events without every dimension",
    { ...SEAL, search: LACKS, counts: { count: 7, ...LACKS } },
    { unresolved: 2 },
    [],
  ],
])("%s has these faults", (_, evidence, more, faults) => {
  const found = findSealFaults({ evidence, storedCount: 9 }, { ...HOLDS, ...more });
  expect(found.map(({ expected, found: is, text }) => `${expected} ${is} ${text}`)).toEqual(faults);
});
