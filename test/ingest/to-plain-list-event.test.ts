import fc from "fast-check";
import { expect, test } from "vitest";
import { EventLogEntry } from "../../src/edge/contract/event-log-list.ts";
import { toListEvent } from "../../src/ingest/to-list-event.ts";
import { toPlainListEvent } from "../../src/ingest/to-plain-list-event.ts";

/** Mostly what is expected there, so that most entries are plain. */
function mostly<T, U>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<U>) {
  return fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: unusual });
}

const odd = mostly(
  fc.constantFrom("", "\0", "Blocked", "ü".repeat(9_000)),
  fc.constantFrom(undefined, null, 0, true, [], {}),
);
const header = fc.oneof(
  fc.constant(null),
  fc.record({ Name: odd, Value: odd }, { requiredKeys: [] }),
  fc.record({ Name: fc.constantFrom("User-Agent", "user-agent"), Value: odd }),
);
const log = fc.record(
  { Url: odd, RemoteIp: odd, Message: odd, Headers: mostly(fc.array(header), odd) },
  { requiredKeys: [] },
);
const entry = fc.record(
  {
    logId: mostly(fc.constant("a"), fc.constantFrom("", 5, null)),
    timestamp: mostly(fc.nat(), fc.constantFrom(-1, 1.5, 9e15, "1")),
    log: mostly(
      log.map((value) => JSON.stringify(value)),
      fc.constantFrom("no json", "[]", "null", "\uFEFF{}", null, 5),
    ),
    labels: mostly(
      fc.record({ asn: odd, country: odd, ruleId: odd, status: odd }, { requiredKeys: [] }),
      fc.constant(null),
    ),
  },
  { requiredKeys: [] },
);

test("whatever is read without the schema reads the same with it", () => {
  let plain = 0;
  fc.assert(
    fc.property(entry, (value) => {
      const event = toPlainListEvent(value);
      if (event === null) return;
      plain++;
      expect(event).toEqual(toListEvent(EventLogEntry.parse(value)));
    }),
    { numRuns: 5_000 },
  );
  expect(plain).toBeGreaterThan(200);
});
